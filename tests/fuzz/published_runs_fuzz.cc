// Reads any bytes as a table of published runs, which gives runs or a DataError.
#include "src/plan/published_runs.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::DataError>([&] {
    for (const auto& run :
         trireme::parse_published_runs(trireme::text_of(data, bytes), "fuzz.csv")) {
      if (run.why_not.empty()) {
        trireme::require(run.layout.micro_batches > 0 && run.seconds > 0);
        trireme::require(!trireme::setting_of(run).cluster.empty());
      }
    }
  });
  return 0;
}
