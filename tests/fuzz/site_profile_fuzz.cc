// Any bytes as a site's profile: a job script, which holds no line that the profile alone did not
// allow, or a ConfigError.
#include "slurm/render/job_script.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    const trireme::MemoryFile file(trireme::text_of(data, bytes));
    (void)trireme::load_site_profile(file.path());
  });
  return 0;
}
