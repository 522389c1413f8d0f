// Parses any bytes as a tuning table, which gives a table that survives a round trip, or a
// DataError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "mpi/session/tuning.h"
#include "src/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::Tuning tuning;
  try {
    tuning = trireme::parse_tuning({reinterpret_cast<const char*>(data), bytes});
  } catch (const trireme::DataError&) {
    return 0;
  }
  if (!(trireme::parse_tuning(trireme::to_text(tuning)) == tuning)) {
    std::abort();
  }
  return 0;
}
