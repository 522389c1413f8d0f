#include "src/app/launch/status_command.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/command/standard_output.h"
#include "src/app/launch/run_state.h"

namespace trireme {

void add_status_command(CommandLine& app) {
  struct Options {
    std::string run;
    bool json = false;
  };
  CommandLine& command =
      app.add_command("status", "Show how a run stands: state, step, time left, job, last fault");
  const auto options = std::make_shared<Options>();
  command.add_option("RUNDIR", options->run, "The run's folder (run.dir)").required();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme status runs/first\n"
      "Reads only the files of the folder, so it works on any host that can read them. States:\n"
      "running, starting, finished, stopped (saved; start it again), failed, interrupted (ended\n"
      "without a save, by a second signal or for no stated reason). The exit code is 0 in every\n"
      "state.");
  command.callback([options] {
    const RunState state = state_of_run(options->run);
    if (options->json) {
      print_json(to_json(state, options->run));
    } else {
      fmt::print("{}", to_text(state, options->run));
    }
  });
}

}  // namespace trireme
