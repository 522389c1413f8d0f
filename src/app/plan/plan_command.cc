#include "src/app/plan/plan_command.h"

#include <memory>

#include "src/app/plan/layouts_command.h"
#include "src/app/plan/plan_subcommands.h"

namespace trireme {

void add_plan_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command("plan", "Predict training runs on any cluster");
  const auto options = std::make_shared<LayoutOptions>();
  add_layout_options(command, *options);
  add_plan_calibrate_command(command, context);
  add_plan_cluster_command(command);
  add_plan_network_command(command);
  add_plan_schedule_command(command);
  add_plan_simulate_command(command);
  add_plan_validate_command(command);
  command.footer(
      "Examples:\n"
      "  trireme plan run.yaml --cluster h100-pod --nodes 16 --explain\n"
      "  trireme plan run.yaml --cluster site.yaml --why-not dp=8,tp=4,pp=2\n"
      "  trireme plan validate benchmarks/plan/published_runs.csv\n"
      "The times are predictions, with the error that docs/planner.md shows.");
  command.callback([options, &command, &context] {
    if (!command.command_given()) {
      plan_run(*options, context.exit_code);
    }
  });
}

}  // namespace trireme
