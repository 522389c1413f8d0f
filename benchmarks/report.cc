#include "benchmarks/report.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "benchmarks/figures.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/device/cuda_device.h"
#include "src/train/run/run_directory.h"

namespace trireme {

void check_can_measure() {
  if (cuda::back_end() == cuda::BackEnd::simulated) {
    throw ConfigError(
        "this program is linked with the simulated CUDA device, which has no speed: benchmarks "
        "need a program without it (build/release/trireme, or the preset cuda)");
  }
}

void check_alone() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* size = std::getenv(name);
    if (size != nullptr && std::string_view(size) != "1") {
      throw ConfigError(
          fmt::format("this benchmark measures one process, but the launcher started {}: run it "
                      "without mpirun or srun, or with -n 1",
                      size));
    }
  }
}

nlohmann::ordered_json bench_document(const nlohmann::ordered_json& results) {
  struct utsname name {};
  ::uname(&name);
  return {{"schema", 1},
          {"program", version_json()},
          {"host",
           {{"name", name.nodename},
            {"kernel", name.release},
            {"machine", name.machine},
            {"cores", std::thread::hardware_concurrency()}}},
          {"time", wall_clock_seconds()},
          {"results", results}};
}

void write_bench_document(const nlohmann::ordered_json& results,
                          const std::filesystem::path& path) {
  if (!path.empty()) {
    write_file_durably(path, json_text(bench_document(results)) + "\n");
  }
}

void report(const nlohmann::ordered_json& results, const std::filesystem::path& path) {
  for (const auto& result : results) {
    fmt::print("{}", result_text(result));
  }
  write_bench_document(results, path);
}

}  // namespace trireme
