#include "src/app/launch/status_command.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/launch/run_state.h"
#include "src/base/printable.h"

namespace trireme {

void add_status_command(CommandLine& app, const AccessSource& access) {
  struct Options {
    std::string run;
    bool json = false;
    KeyChoice keys;
  };
  CommandLine& command =
      app.add_command("status", "Show how a run stands: state, step, time left, job, last fault");
  const auto options = std::make_shared<Options>();
  command.add_option("RUNDIR", options->run, "The run's folder (run.dir)").required();
  command.add_flag("--json", options->json, "Print JSON");
  options->keys.add_to(command);
  options->keys.access = access;
  command.footer(
      "Example:\n"
      "  trireme status runs/first\n"
      "Reads only files in the run's folder and in its checkpoint folder, so it works on any host\n"
      "that sees them. States: running, starting, finished, stopped (saved; start it again),\n"
      "failed, interrupted (ended without a save, by a second signal or for no stated reason).\n"
      "The exit code is 0 in every state.");
  command.callback([options] {
    const RunState state = state_of_run(options->run, options->keys.reader());
    const std::filesystem::path run = options->run;
    warn_of(state.damaged_metrics, run / "metrics.jsonl");
    warn_of(state.damaged_journal, run / "journal.jsonl");
    if (state.exit_reason_is_damaged) {
      fmt::print(stderr, "trireme: {} is damaged: why the ranks have ended is not known\n",
                 printable((run / "exit_reason.json").string()));
    }
    if (options->json) {
      print_json(to_json(state, options->run));
    } else {
      fmt::print("{}", to_text(state, options->run));
    }
  });
}

}  // namespace trireme
