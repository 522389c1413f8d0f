#include "src/app/launch/launch_command.h"

#include <memory>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/launch/launch_plan.h"
#include "src/app/launch/launch_subcommands.h"

namespace trireme {

namespace {

void add_node_options(CommandLine& command, LaunchOptions& o) {
  command.add_option("--hosts", o.hosts, "File with one node per line: NAME [slots=N] [group=G]")
      .type_name("FILE");
  command.add_option("--local", o.local, "Simulate N nodes on this machine")
      .no_default()
      .check(within(1, 1024));
  command
      .add_option("--ranks-per-node", o.ranks_per_node,
                  "Ranks per node (default: from --hosts or Slurm, else 1)")
      .check(within(1, 4096));
  command
      .add_option("--cpus-per-rank", o.cpus_per_rank,
                  "Cores to bind each rank to (default: decided by mpirun or srun)")
      .check(within(1, 4096));
  command.add_option("--spares", o.spares, "Nodes to keep in reserve for nodes that fail")
      .check(within(0, 1 << 20));
  command
      .add_option(
          "--min-nodes", o.min_nodes,
          "Continue with as few as N nodes if more are not left (default: all but the spares)")
      .check(within(1, 1 << 20));
}

void add_start_options(CommandLine& command, LaunchOptions& o) {
  command.add_option("--launcher", o.launcher, "The program that starts the ranks")
      .check(one_of({"mpirun", "srun"}));
  command.add_option("--ssh", o.ssh, "The command that reaches the nodes of --hosts")
      .type_name("COMMAND");
  command
      .add_option("--launcher-arg", o.launcher_arguments,
                  "An argument to pass to mpirun or srun; can be repeated")
      .one_value_per_use()
      .type_name("ARGUMENT");
  command
      .add_option(
          "--ports", o.ports,
          "Ports on which the supervisor and the agents listen, as in 47000-47099 (default: "
          "any free ones)")
      .type_name("FIRST-LAST");
  command
      .add_option("--health", o.health,
                  "Shell command to run on each node before it is used; the node is fit if the "
                  "command exits with 0")
      .type_name("COMMAND");
  command
      .add_option("--site-list", o.site_list,
                  "File of bad nodes: nodes listed in it are left out, nodes that fail are "
                  "added to it")
      .type_name("FILE");
}

}  // namespace

void add_launch_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command(
      "launch", "Start the ranks of a run, watch them, and relaunch them after a failure");
  const auto o = std::make_shared<LaunchOptions>();
  add_node_options(command, *o);
  add_start_options(command, *o);
  command.add_option("RUN", o->run, "After '--': the run to start, as for trireme train");
  command.footer(
      "Examples:\n"
      "  trireme launch --ranks-per-node 4 -- train run.yaml\n"
      "  trireme launch --hosts hosts.txt --spares 1 -- train run.yaml train.steps=1000\n"
      "Inside a Slurm job the ranks run on the job's nodes. On SIGTERM, SIGINT, SIGHUP, SIGUSR1 or "
      "SIGUSR2 the run saves a checkpoint and the launch exits with 75. A second signal ends the "
      "ranks at once, without a save; the launch then exits with 128 plus the signal's number. "
      "'trireme launch report' summarizes what happened.");
  command.usage("[OPTION]... -- train CONFIG [KEY=VALUE]...");
  add_report_command(command);
  add_agent_command(command, context.exit_code);
  add_deputy_command(command, context.exit_code);
  add_rank_command(command);
  command.callback([&command, o, &context] {
    if (!command.command_given()) {
      const LaunchPlan plan = make_launch_plan(*o, environ);
      context.audit.begin(
          audit_config_of(*o, environ), "launch",
          {{"run", std::filesystem::absolute(plan.run_folder).lexically_normal().string()},
           {"arguments", context.arguments}});
      context.exit_code = supervise(plan);
    }
  });
}

}  // namespace trireme
