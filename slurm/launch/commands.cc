#include "slurm/launch/commands.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include <fmt/ranges.h>

#include "slurm/process/proc.h"
#include "src/base/error.h"

namespace trireme {
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<std::string> names_of(const std::vector<NodeSpec>& nodes) {
  std::vector<std::string> names;
  for (const NodeSpec& node : nodes) {
    names.push_back(node.name);
  }
  return names;
}

// Returns the variables that every rank of the attempt receives.
Environment shared_environment(const LaunchSetting& setting, std::int64_t attempt,
                               const std::vector<NodeSpec>& nodes) {
  Environment environment = {
      {"TRIREME_LAUNCH_ID", setting.launch},
      {"TRIREME_GENERATION", fmt::format("{}", attempt)},
      {"TRIREME_LAUNCH_NODES", fmt::format("{}", fmt::join(names_of(nodes), ","))},
      {"TRIREME_LAUNCH_RANKS_PER_NODE", fmt::format("{}", setting.ranks_per_node)}};
  environment.insert(environment.end(), setting.extra.begin(), setting.extra.end());
  return environment;
}

// These make mpirun's daemons notice within seconds, rather than eight minutes, that a host is
// gone. mpirun's grace for ranks that it ends stays at two seconds, because mpirun waits
// for all of it after every rank that exits with a code, too.
const Environment kPatience = {{"OMPI_MCA_oob_tcp_keepalive_time", "5"},
                               {"OMPI_MCA_oob_tcp_keepalive_intvl", "2"},
                               {"OMPI_MCA_oob_tcp_keepalive_probes", "3"}};

// Without this, jobs submitted with --export=NONE, as some sites require, would keep our variables
// from the ranks.
constexpr const char* kExport = "--export=ALL";

std::vector<std::string> mpirun(const LaunchSetting& setting, std::int64_t attempt,
                                const std::vector<NodeSpec>& nodes, Environment& environment) {
  const auto count = static_cast<int>(nodes.size());
  const int ranks = count * setting.ranks_per_node;
  std::vector<std::string> hosts;
  for (const NodeSpec& node : nodes) {
    hosts.push_back(fmt::format("{}:{}", node.name, setting.ranks_per_node));
  }
  std::vector<std::string> argv = {"mpirun", "-n", fmt::format("{}", ranks)};
  if (setting.reach == Reach::local) {
    append(argv, {"--host", fmt::format("localhost:{}", ranks)});
  } else {
    append(argv, {"--host", fmt::format("{}", fmt::join(hosts, ","))});
  }
  if (setting.reach != Reach::local || setting.cpus_per_rank > 0) {
    const int per_host = setting.reach == Reach::local ? ranks : setting.ranks_per_node;
    append(argv, {"--map-by", setting.cpus_per_rank > 0 ? fmt::format("ppr:{}:node:PE={}", per_host,
                                                                      setting.cpus_per_rank)
                                                        : fmt::format("ppr:{}:node", per_host)});
  }
  if (setting.cpus_per_rank > 0) {
    append(argv, {"--bind-to", "core"});
  }
  if (setting.reach == Reach::ssh) {
    environment.emplace_back("OMPI_MCA_plm_rsh_agent",
                             fmt::format("{}", fmt::join(setting.ssh, " ")));
  }
  if (setting.reach == Reach::slurm) {
    // Without SLURM_OVERLAP, the daemons of a relaunch would wait forever for the step of a dead
    // node.
    environment.emplace_back("SLURM_OVERLAP", "1");
    environment.emplace_back("SLURM_EXPORT_ENV", "ALL");
  }
  for (const auto& [name, value] : environment) {
    if (name.starts_with("TRIREME_")) {
      append(argv, {"-x", name});
    }
  }
  for (const std::string& name : setting.handed_on) {
    append(argv, {"-x", name});
  }
  environment.insert(environment.end(), kPatience.begin(), kPatience.end());
  environment.emplace_back(std::string("OMPI_MCA_") + kLaunchMark,
                           fmt::format("{}.{}", setting.launch, attempt));
  return argv;
}

std::vector<std::string> srun(const LaunchSetting& setting, const std::vector<NodeSpec>& nodes) {
  const auto count = static_cast<int>(nodes.size());
  std::vector<std::string> argv = {"srun",
                                   "--mpi=pmix",
                                   "--kill-on-bad-exit=1",
                                   "--overlap",
                                   kExport,
                                   "--distribution=block",
                                   fmt::format("--nodes={}", count),
                                   fmt::format("--ntasks={}", count * setting.ranks_per_node),
                                   fmt::format("--ntasks-per-node={}", setting.ranks_per_node),
                                   fmt::format("--nodelist={}", fmt::join(names_of(nodes), ","))};
  if (setting.cpus_per_rank > 0) {
    append(argv, {fmt::format("--cpus-per-task={}", setting.cpus_per_rank), "--cpu-bind=cores"});
  }
  return argv;
}

std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, ',')) {
    parts.push_back(part);
  }
  return parts;
}

int number_in(const Environment& environment, const std::string& name) {
  const std::string text = find(environment, name).value_or("");
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

int rank_in(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const int rank = number_in(environment, name); rank >= 0) {
      return rank;
    }
  }
  return -1;
}

}  // namespace

std::string posix_word(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

Command on_node(const LaunchSetting& setting, const std::string& node,
                const std::vector<std::string>& words) {
  Command command;
  std::vector<std::string> own = {setting.program};
  append(own, words);
  switch (setting.reach) {
    case Reach::local:
      command.argv = own;
      break;
    case Reach::ssh: {
      std::string line;
      for (const std::string& word : own) {
        line += (line.empty() ? "" : " ") + posix_word(word);
      }
      command.argv = setting.ssh;
      append(command.argv, {node, line});
      break;
    }
    case Reach::slurm:
      // The agent is not bound to cores, as its health check measures the whole node.
      command.argv = {"srun",
                      "--overlap",
                      "--no-kill",
                      kExport,
                      "--nodes=1",
                      "--ntasks=1",
                      "--cpu-bind=none",
                      "--mpi=none",
                      "--nodelist=" + node};
      append(command.argv, own);
      break;
  }
  return command;
}

Command ranks_command(const LaunchSetting& setting, std::int64_t attempt,
                      const std::vector<NodeSpec>& nodes) {
  Command command;
  command.environment = shared_environment(setting, attempt, nodes);
  command.argv = setting.starter == Starter::mpirun
                     ? mpirun(setting, attempt, nodes, command.environment)
                     : srun(setting, nodes);
  append(command.argv, setting.launcher_arguments);
  append(command.argv, {setting.program, "launch", "rank", "--"});
  append(command.argv, setting.run);
  return command;
}

RankEnvironment rank_environment(const Environment& environment) {
  const std::vector<std::string> nodes =
      split(find(environment, "TRIREME_LAUNCH_NODES").value_or(""));
  const int ranks = number_in(environment, "TRIREME_LAUNCH_RANKS_PER_NODE");
  const int rank = rank_in(environment);
  std::size_t place =
      ranks > 0 && rank >= 0 ? static_cast<std::size_t>(rank / ranks) : nodes.size();
  // Slurm orders the nodes of a step by itself and names this node in SLURMD_NODENAME.
  if (find(environment, "SLURM_STEP_ID") && !find(environment, "OMPI_COMM_WORLD_RANK")) {
    const auto named =
        std::find(nodes.begin(), nodes.end(), find(environment, "SLURMD_NODENAME").value_or(""));
    place = static_cast<std::size_t>(named - nodes.begin());
  }
  if (place >= nodes.size() || !find(environment, "TRIREME_LAUNCH_ID")) {
    throw ConfigError(
        "'trireme launch rank' cannot be started by hand: 'trireme launch' starts it with mpirun "
        "or srun");
  }
  return {.node = nodes[place], .launch = *find(environment, "TRIREME_LAUNCH_ID")};
}

}  // namespace trireme
