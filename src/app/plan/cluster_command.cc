#include <memory>

#include <fmt/format.h>

#include "src/app/plan/plan_subcommands.h"
#include "src/base/printable.h"
#include "src/plan/cluster_file.h"

namespace trireme {

void add_plan_cluster_command(CommandLine& plan) {
  CommandLine& command =
      plan.add_command("cluster", "Check a cluster file and show every key of it");
  const auto file = std::make_shared<std::filesystem::path>();
  command.add_option("FILE", *file, "The cluster file").required();
  command.footer(
      "Example:\n"
      "  trireme plan cluster configs/cluster/a100-selene.yaml");
  command.callback([file] { fmt::print("{}", printable_lines(resolved_cluster(*file))); });
}

}  // namespace trireme
