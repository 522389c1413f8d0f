#include "src/app/launch/launch_command.h"

#include <memory>

#include <unistd.h>

#include "src/app/launch/launch_plan.h"
#include "src/app/launch/launch_subcommands.h"

namespace trireme {

void add_launch_command(CommandLine& app, int& exit_code) {
  CommandLine& command = app.add_command(
      "launch", "Start a run's ranks, watch them, relaunch them without what has failed");
  const auto o = std::make_shared<LaunchOptions>();
  command.add_option("--hosts", o->hosts, "a file with a node a line: NAME [slots=N] [group=G]");
  command.add_option("--local", o->local, "so many nodes, all on this machine")
      .check(within(1, 1024));
  command.add_option("--ranks-per-node", o->ranks_a_node, "ranks on every node")
      .check(within(1, 4096));
  command.add_option("--cpus-per-rank", o->cpus_a_rank, "cores to bind each rank to")
      .check(within(1, 4096));
  command.add_option("--spares", o->spares, "nodes to keep ready for those that fail")
      .check(within(0, 1 << 20));
  command.add_option("--min-nodes", o->min_nodes, "go on with as few, where too few are left")
      .check(within(1, 1 << 20));
  command.add_option("--launcher", o->launcher, "what starts the ranks")
      .check(one_of({"mpirun", "srun"}))
      .show_default();
  command.add_option("--ssh", o->ssh, "how to reach the nodes of --hosts").show_default();
  command
      .add_option("--launcher-arg", o->launcher_arguments,
                  "one more word for mpirun or srun; may be repeated")
      .one_value_a_use();
  command.add_option("--ports", o->ports,
                     "the ports on which the supervisor and the agents listen, as in 47000-47099 "
                     "(default: any free ones)");
  command.add_option("--health", o->health,
                     "a shell command for every node before it is used: 0 means fit");
  command.add_option("--site-list", o->site_list,
                     "a file of bad nodes: those in it are left out, new ones are added");
  command.add_option("RUN", o->run, "after '--': train CONFIG [key=value ...]");
  command.footer(
      "Examples:\n"
      "  trireme launch --ranks-per-node 4 -- train run.yaml\n"
      "  trireme launch --hosts hosts.txt --spares 1 -- train run.yaml train.steps=1000\n"
      "Inside a Slurm job the job's nodes are used. SIGTERM, SIGUSR1, SIGUSR2 and SIGINT save\n"
      "and end with exit code 75. What happened: RUN/journal.jsonl and 'trireme launch report'.");
  add_report_command(command);
  add_agent_command(command, exit_code);
  add_deputy_command(command, exit_code);
  add_rank_command(command);
  command.callback([&command, o, &exit_code] {
    if (!command.command_given()) {
      exit_code = supervise(make_launch_plan(*o, environ));
    }
  });
}

}  // namespace trireme
