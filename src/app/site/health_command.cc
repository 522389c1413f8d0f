#include "src/app/site/health_command.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/busy_watch.h"
#include "benchmarks/report.h"
#include "src/app/command/standard_output.h"
#include "src/app/site/gpu_measures.h"
#include "src/app/site/node_measures.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/node_name.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/base/temporary_folder.h"

namespace trireme {
namespace {

struct HealthOptions {
  std::string baseline, save, folder;
  double at_least = 90;  // percent
  double seconds = 28;
  bool json = false;
};

// Formats a rate given in GFLOP/s or MB/s, such as "21.1 GB/s".
std::string rate_text(double rate, const std::string& unit) {
  return unit == "MB/s" && rate >= 1000 ? fmt::format("{:.1f} GB/s", rate / 1000)
                                        : fmt::format("{:.0f} {}", rate, unit);
}

std::string rates_text(const Measures& now, const Measures* baseline) {
  std::vector<std::string> parts;
  for (const auto& [name, rate] : now.rates) {
    std::string text = fmt::format("{} {}", name, rate_text(rate.median, rate.unit));
    if (baseline != nullptr && baseline->rates.contains(name)) {
      text += fmt::format(" ({:.0f} %)", 100 * rate.median / baseline->rates.at(name).median);
    }
    parts.push_back(text);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::ordered_json number(const Reading& reading) {
  return reading ? nlohmann::ordered_json(*reading) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const GpuState& gpu) {
  std::vector<std::int64_t> pids;
  for (const GpuProcess& process : gpu.processes) {
    pids.push_back(process.pid);
  }
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"bus", gpu.bus},
          {"failure", gpu.failure},
          {"ecc_corrected", number(gpu.ecc_corrected)},
          {"ecc_uncorrected", number(gpu.ecc_uncorrected)},
          {"rows_remapped", number(gpu.rows_remapped)},
          {"sm_mhz", number(gpu.sm_mhz)},
          {"most_sm_mhz", number(gpu.most_sm_mhz)},
          {"memory_mhz", number(gpu.memory_mhz)},
          {"throttling", gpu.throttling},
          {"pcie_generation", number(gpu.pcie_generation)},
          {"most_pcie_generation", number(gpu.most_pcie_generation)},
          {"pcie_width", number(gpu.pcie_width)},
          {"pcie_replays", number(gpu.pcie_replays)},
          {"nvlinks_up", gpu.nvlinks_up},
          {"nvlinks_down", gpu.nvlinks_down},
          {"nvlink_errors", number(gpu.nvlink_errors)},
          {"mig", number(gpu.mig)},
          {"persistence", number(gpu.persistence)},
          {"processes", pids}};
}

nlohmann::ordered_json to_json(const NodeExamination& node, double seconds, double waiting_part) {
  nlohmann::ordered_json rates = nlohmann::ordered_json::object();
  for (const auto& [name, rate] : node.measures.rates) {
    rates[name] = {{"median", rate.median}, {"deviation", rate.deviation}, {"unit", rate.unit}};
  }
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
  for (const GpuState& gpu : node.gpus) {
    gpus.push_back(to_json(gpu));
  }
  return {{"schema", 1},
          {"node", node.measures.node},
          {"healthy", node.complaints.empty()},
          {"complaints", node.complaints},
          {"seconds", seconds},
          {"waited_fraction", waiting_part},
          {"notes", node.notes},
          {"facts", node.measures.facts},
          {"counters", node.measures.counters},
          {"rates", rates},
          {"gpu_back_end", node.back_end},
          {"driver", node.driver},
          {"gpus", gpus}};
}

// Returns "" if the check got the cores that it asked for. The host of several nodes, each with a
// slurmd of its own, has another name than the node.
std::string busy_text(double waiting_part, const std::string& node) {
  if (waiting_part < kBusyPart) {
    return "";
  }
  const std::string host = host_name();
  return fmt::format(
      "this check waited for a core {:.0f} % of its time: other programs{} keep the cores busy",
      100 * waiting_part, host == node ? "" : ", or other nodes of Slurm on host " + host + ",");
}

// Returns the complaint about a check that did not end.
std::string unfinished_text(const std::string& part, double seconds, const std::string& busy) {
  return busy.empty() ? fmt::format(
                            "{}: not finished within {:g} s, although the cores were free: "
                            "look at this part of the node, or allow more time with "
                            "--seconds",
                            part, seconds)
                      : fmt::format(
                            "{}: not finished within {:g} s; {}. Check such nodes one after "
                            "the other, when they are idle, or allow more time with "
                            "--seconds",
                            part, seconds, busy);
}

// Ends the process with code 4, naming the current part, unless the alarm is destroyed in time. A
// hang on a disk cannot be interrupted otherwise.
class Alarm {
 public:
  Alarm(double seconds, bool json, const std::atomic<const char*>& part, const BusyWatch& busy)
      : thread_([this, seconds, json, &part, &busy] { wait(seconds, json, part, busy); }) {}
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  void wait(double seconds, bool json, const std::atomic<const char*>& part,
            const BusyWatch& busy) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return over_; })) {
      NodeExamination unfinished;
      const std::string& node = unfinished.measures.node = node_name();
      const double waiting_part = busy.waiting_part();
      const std::string complaint =
          unfinished_text(part.load(), seconds, busy_text(waiting_part, node));
      unfinished.complaints = {complaint};
      const std::string text = json ? json_text(to_json(unfinished, seconds, waiting_part)) + "\n"
                                    : fmt::format("health FAILED on {}: {}\n", node, complaint);
      (void)!::write(STDOUT_FILENO, text.data(), text.size());
      ::_exit(static_cast<int>(ExitCode::below_threshold));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

void health(const HealthOptions& options, int& exit_code) {
  check_one_per_node();
  const Stopwatch watch;
  std::optional<Measures> baseline;
  if (!options.baseline.empty()) {
    baseline = load_baseline(options.baseline);
  }
  // Use the disk of the baseline. The temporary folder of a job may be on another one.
  const std::string folder = !options.folder.empty()                 ? options.folder
                             : baseline && !baseline->folder.empty() ? baseline->folder
                                                                     : temporary_folder().string();
  std::atomic<const char*> part = "start";
  NodeExamination node;
  const BusyWatch watched;
  {
    const Alarm alarm(options.seconds, options.json, part, watched);
    node = examine_node(folder, [&part](const char* name) { part = name; });
    node.measures.folder = folder;
  }
  if (baseline) {
    for (const std::string& complaint : compare(node.measures, *baseline, options.at_least / 100)) {
      node.complaints.push_back(with_identity(complaint, *baseline, node.gpus));
    }
  }
  const bool well = node.complaints.empty();
  const double waiting_part = watched.waiting_part();
  const std::string busy = busy_text(waiting_part, node.measures.node);
  if (!well && !busy.empty()) {
    node.complaints.push_back(busy);
  }
  if (well && !options.save.empty()) {
    write_named_file(options.save, baseline_text(node.measures));
    if (!busy.empty()) {
      say(fmt::format("warning: {}: save the baseline again when the node is idle", busy));
    }
  }
  exit_code = static_cast<int>(well ? ExitCode::ok : ExitCode::below_threshold);
  if (options.json) {
    print_json(to_json(node, watch.seconds(), waiting_part));
    return;
  }
  fmt::print("health {} on {}: {}{}{}{}; {:.1f} s\n", well ? "ok" : "FAILED",
             printable(node.measures.node),
             well ? "" : printable(fmt::format("{}; ", fmt::join(node.complaints, "; "))),
             rates_text(node.measures, baseline ? &*baseline : nullptr),
             node.notes.empty()
                 ? ""
                 : printable(fmt::format("; not examined: {}", fmt::join(node.notes, "; "))),
             well && !busy.empty() ? "; " + busy : "", watch.seconds());
}

}  // namespace

void add_health_command(CommandLine& app, int& exit_code) {
  CommandLine& command = app.add_command("health", "Check whether this node is fit to train");
  const auto options = std::make_shared<HealthOptions>();
  command.add_option("--baseline", options->baseline, "Compare with the baseline in FILE")
      .type_name("FILE");
  command
      .add_option("--save-baseline", options->save,
                  "Write the measured rates to FILE if the node is healthy")
      .type_name("FILE")
      .written();
  command
      .add_option("--dir", options->folder,
                  "Measure the disk that holds DIR (default: the baseline's, else $TMPDIR)")
      .type_name("DIR");
  command
      .add_option("--at-least", options->at_least,
                  "Fail below PERCENT of the baseline's rates; differences within the baseline's "
                  "own scatter are ignored")
      .type_name("PERCENT")
      .check(within(1.0, 100.0));
  command.add_option("--seconds", options->seconds, "Fail if the check takes longer than SECONDS")
      .type_name("SECONDS")
      .check(within(1.0, 3600.0));
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme health --save-baseline /etc/trireme/node.baseline\n"
      "  trireme health --baseline /etc/trireme/node.baseline\n"
      "Exits with 0 if the node is fit, 4 if it is not, 65 if the baseline is damaged, and 66 if "
      "it "
      "is missing. On nodes with GPUs, the check covers their errors, clocks, links and speed, "
      "too; "
      "docs/gpu.md says what fails. For Slurm's HealthCheckProgram, prolog and epilog see "
      "slurm/templates/node-health.sh.");
  command.callback([options, &exit_code] { health(*options, exit_code); });
}

}  // namespace trireme
