#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "slurm/journal/journal.h"
#include "slurm/journal/report.h"
#include "src/app/command/standard_output.h"
#include "src/app/launch/launch_subcommands.h"
#include "src/app/launch/run_state.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

struct ReportOptions {
  std::string folder;
  bool json = false;
};

void report(const ReportOptions& options) {
  constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;
  const std::filesystem::path path = std::filesystem::path(options.folder) / "journal.jsonl";
  check_run_folder(options.folder);
  std::error_code gone;
  if (!std::filesystem::exists(path, gone)) {
    throw NotFound(
        fmt::format("{} has no journal.jsonl: it was not started by 'trireme launch', which writes "
                    "that file, or the file is gone. 'trireme status {}' shows how any run stands",
                    options.folder, options.folder));
  }
  DamagedLines damaged;
  const auto events = parse_journal(read_file(path, kMostBytes), damaged);
  warn_of(damaged, path);
  if (events.empty()) {
    throw DataError(fmt::format("{} holds no event of a launch", path.string()));
  }
  Account account = account_of(events, standing_of(options.folder));
  account.is_incomplete = account.is_incomplete || damaged.count > 0;
  if (options.json) {
    print_json(to_json(account));
  } else {
    fmt::print("{}", printable_lines(to_text(account)));
  }
}

}  // namespace

void add_report_command(CommandLine& launch) {
  CommandLine& command =
      launch.add_command("report", "Show where a run's time went and why its attempts ended");
  const auto options = std::make_shared<ReportOptions>();
  command.add_option("RUNDIR", options->folder, "The run's folder (run.dir)").required();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme launch report runs/first");
  command.callback([options] { report(*options); });
}

}  // namespace trireme
