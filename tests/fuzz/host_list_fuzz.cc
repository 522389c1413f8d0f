// Parses any text as a Slurm host list, which gives plain host names or a ConfigError, and as a
// Slurm time.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "slurm/job/host_list.h"
#include "slurm/job/time_left.h"
#include "src/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)trireme::parse_slurm_time(text);
  try {
    for (const std::string& host : trireme::expand_host_list(text)) {
      if (host.empty() || host.find_first_of("[], \n") != std::string::npos) {
        std::abort();
      }
    }
  } catch (const trireme::ConfigError&) {
  }
  return 0;
}
