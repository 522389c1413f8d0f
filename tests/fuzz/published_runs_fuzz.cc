// Reads any bytes as a table of published runs, which gives runs or a DataError.
#include "src/plan/validation.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::DataError>([&] {
    const auto runs = trireme::parse_published_runs(trireme::text_of(data, bytes), "fuzz.csv");
    bool is_small = true;  // schedules of many stages take long to simulate
    for (const auto& run : runs) {
      is_small = is_small && run.layout.pp * run.layout.virtual_stages <= 16;
      if (run.why_not.empty()) {
        trireme::require(run.layout.micro_batches > 0 && run.seconds > 0);
        trireme::require(!trireme::setting_of(run).cluster.empty());
      }
    }
    std::map<std::string, trireme::Cluster> clusters;
    for (const auto& run : is_small&& runs.size() <= 16 ? trireme::predict(runs, clusters)
                                                        : std::vector<trireme::PredictedRun>()) {
      trireme::require(run.time.total() > 0);  // and no NaN
    }
  });
  return 0;
}
