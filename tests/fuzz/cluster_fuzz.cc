// Loads any bytes as a cluster file of the planner, which gives a cluster or a ConfigError.
#include "src/plan/cluster_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::ConfigError>([&] {
    const trireme::MemoryFile file(trireme::text_of(data, bytes));
    const trireme::Cluster cluster = trireme::load_cluster(file.path());
    trireme::require(cluster.devices() > 0);
  });
  return 0;
}
