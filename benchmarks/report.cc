#include "benchmarks/report.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/provenance.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/base/error.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 2;

bool holds_values_only(const Json& list) {
  return std::none_of(list.begin(), list.end(),
                      [](const Json& value) { return value.is_structured(); });
}

// Appends the value. Its later lines are indented by `depth` levels.
void append(std::string& text, const Json& value, int depth) {
  if (!value.is_structured() || value.empty() || (value.is_array() && holds_values_only(value))) {
    text += json_line(value);
    return;
  }
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  const bool is_list = value.is_array();
  text += is_list ? "[" : "{";
  bool first = true;
  for (const auto& [key, each] : value.items()) {
    text += std::string(first ? "" : ",") + "\n" + indent + "  ";
    text += is_list ? "" : json_line(Json(key)) + ": ";
    append(text, each, depth + 1);
    first = false;
  }
  text += "\n" + indent + (is_list ? "]" : "}");
}

}  // namespace

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

void check_one_per_node() {
  const char* const local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const char* const tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");  // such as "1(x3),2"
  std::istringstream counts(local != nullptr ? local : tasks != nullptr ? tasks : "");
  for (std::string count; std::getline(counts, count, ',');) {
    if (count != "1" && !count.starts_with("1(")) {
      throw ConfigError(
          "this command measures a whole node, but the launcher started several processes on one: "
          "start one on each node, as with srun --ntasks-per-node=1");
    }
  }
}

Json bench_document(const Json& results, const BenchContext& context) {
  Json ranks = Json::array();
  for (const RankPlace& place : context.places) {
    ranks.push_back({{"rank", place.rank},
                     {"host", place.host},
                     {"node", place.node},
                     {"cpus", place.binding.cpus}});
  }
  Json program = version_json();
  program["mpi"] = context.mpi.empty() ? Json(nullptr) : Json(context.mpi);
  Json document = {{"schema", kSchema},
                   {"command", context.command},
                   {"program", program},
                   {"host", host_json()},
                   {"ranks", ranks},
                   {"environment", environment_json()},
                   {"clock", clock_json()},
                   {"time", context.time},
                   {"waited_fraction", context.waited_fraction}};
  if (!context.left_out.empty()) {
    document["left_out"] = context.left_out;
  }
  for (const FailedQuestion& each : context.failed) {
    document["failed"].push_back({{"question", each.question}, {"reason", each.reason}});
  }
  document["results"] = results;
  return document;
}

std::string document_text(const Json& document) {
  std::string text;
  append(text, document, 0);
  return text + "\n";
}

}  // namespace trireme
