// Loads any bytes as a site profile, which gives a profile or a ConfigError.
#include "slurm/render/job_script.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    const trireme::MemoryFile file(trireme::text_of(data, bytes));
    (void)trireme::load_site_profile(file.path());
  });
  return 0;
}
