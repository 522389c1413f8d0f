#include "src/app/plan/plan_command.h"

#include "src/app/plan/plan_subcommands.h"

namespace trireme {

void add_plan_command(CommandLine& app, int& /*exit_code*/) {
  CommandLine& command = app.add_command("plan", "Predict training runs on any cluster");
  command.require_command();
  add_plan_cluster_command(command);
  add_plan_schedule_command(command);
  command.footer(
      "Examples:\n"
      "  trireme plan cluster configs/cluster/a100-selene.yaml\n"
      "  trireme plan schedule --schedule interleaved --stages 4 --chunks 2");
}

}  // namespace trireme
