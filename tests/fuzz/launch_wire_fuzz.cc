// Reads any bytes as a launch's connection: cuts them into frames and parses each frame as every
// message. A message that parses survives a round trip; all else is refused with a DataError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "slurm/agent/copy_messages.h"
#include "slurm/wire/frame.h"
#include "slurm/wire/messages.h"
#include "src/base/error.h"

namespace {

template <class Parse>
void read_as(const std::string& payload, Parse parse) {
  try {
    const auto message = parse(payload);
    if (to_json(parse(to_json(message))) != to_json(message)) {
      std::abort();
    }
  } catch (const trireme::DataError&) {
    // The input was refused.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::FrameReader reader;
  reader.trust();
  reader.feed({reinterpret_cast<const char*>(data), bytes});
  try {
    while (const auto payload = reader.next()) {
      read_as(*payload, trireme::parse_hello);
      read_as(*payload, trireme::parse_challenge);
      read_as(*payload, trireme::parse_agent_report);
      read_as(*payload, trireme::parse_order);
      read_as(*payload, trireme::parse_copy_message);
    }
  } catch (const trireme::DataError&) {
    // The input is not a frame.
  }
  return 0;
}
