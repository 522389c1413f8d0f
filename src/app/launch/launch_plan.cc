#include "src/app/launch/launch_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include <unistd.h>

#include "mpi/launch_environment.h"
#include "mpi/topology.h"
#include "slurm/doctor/node_checks.h"
#include "slurm/job/job_environment.h"
#include "slurm/job/topology.h"
#include "slurm/policy/site_list.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/units.h"
#include "src/train/run/launch_tls.h"
#include "src/train/run/layout.h"
#include "src/train/run/run_config.h"
#include "src/train/start/run_place.h"
#include "src/train/start/startup.h"

namespace trireme {
namespace {

// Returns the names of variables to pass on to ranks on other hosts.
std::vector<std::string> names_to_hand_on(char** environment) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"UCX_", "OMP_", "NCCL_", "DNNL_",
                                                         "TRIREME_"};
  constexpr std::array<std::string_view, 2> kNames = {"LD_LIBRARY_PATH", "PATH"};
  std::vector<std::string> names;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool own = name.starts_with("TRIREME_LAUNCH_") || name == "TRIREME_GENERATION" ||
                     name == "TRIREME_NODE" || name == "TRIREME_NODE_DIR";
    const bool wanted =
        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                    [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
        std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    if (wanted && !own) {
      names.emplace_back(name);
    }
  }
  return names;
}

// Parses "2", or "2(x4)", which is Slurm's notation for four equal nodes. Returns 0 for other text.
int leading_number(const std::optional<std::string>& text) {
  int value = 0;
  if (text) {
    std::from_chars(text->data(), text->data() + text->size(), value);
  }
  return std::max(value, 0);
}

struct Ground {
  Reach reach = Reach::local;
  std::vector<NodeSpec> nodes;
  int ranks_per_node = 0;
  std::string job;  // the Slurm job's id for commands; empty outside Slurm
  std::string batch_node;
};

Ground place_of(const LaunchOptions& options) {
  const SlurmEnvironment environment = process_environment();
  Ground place;
  if (!options.hosts.empty() && options.local > 0) {
    throw ConfigError("--hosts and --local exclude each other");
  }
  if (!options.hosts.empty()) {
    constexpr std::int64_t kMostBytes = 64 << 20;
    place.reach = Reach::ssh;
    place.nodes = parse_host_file(read_file(options.hosts, kMostBytes), options.hosts);
    place.ranks_per_node = place.nodes.front().slots;
    for (const NodeSpec& node : place.nodes) {
      if (options.ranks_per_node == 0 && node.slots != place.ranks_per_node) {
        const auto slots = [](const NodeSpec& one) {
          return one.slots > 0 ? fmt::format("{} has slots={}", one.name, one.slots)
                               : fmt::format("{} has no slots=N", one.name);
        };
        throw ConfigError(
            fmt::format("{}: {}, but {}: all nodes get the same number of ranks; choose it with "
                        "--ranks-per-node or give all of them the same slots",
                        options.hosts, slots(place.nodes.front()), slots(node)));
      }
    }
    return place;
  }
  const std::optional<SlurmJob> job = slurm_job(environment);
  if (job && options.local == 0) {
    place.reach = Reach::slurm;
    const std::map<std::string, std::string> switches = slurm_topology();
    for (const std::string& name : job->nodes) {
      const auto found = switches.find(name);
      const bool known = found != switches.end() && is_host_name(found->second);
      place.nodes.push_back({.name = name, .group = known ? found->second : ""});
    }
    place.ranks_per_node = leading_number(environment("SLURM_NTASKS_PER_NODE"));
    place.job = job->command_id;
    place.batch_node = job->node;
    return place;
  }
  for (int i = 0; i < std::max(options.local, 1); ++i) {
    place.nodes.push_back({.name = fmt::format("local{}", i)});
  }
  return place;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  std::string word;
  while (stream >> word) {
    words.push_back(word);
  }
  if (words.empty()) {
    throw ConfigError("--ssh names no command");
  }
  return words;
}

// Refuses limits of this process, and thus of its agent and its ranks, with which all attempts
// would fail.
void check_own_limits() {
  const std::vector<Finding> found = check_least_limits(process_limits(), host_name());
  if (!found.empty()) {
    throw ConfigError(
        fmt::format("{}: {}: {}", found.front().where, found.front().what, found.front().remedy));
  }
}

// Refuses to run as root before mpirun does so in four attempts.
void check_user(const LaunchOptions& options) {
  const auto& more = options.launcher_arguments;
  const bool allowed = std::find(more.begin(), more.end(), "--allow-run-as-root") != more.end();
  const std::vector<Finding> found =
      options.launcher != "mpirun" || allowed
          ? std::vector<Finding>{}
          : check_user_of_mpirun(::geteuid(), process_environment(), "this host");
  if (!found.empty()) {
    throw ConfigError(found.front().what + ": " + found.front().remedy);
  }
}

// Refuses what mpirun would refuse in four attempts: to bind the ranks of this host to more cores
// than it has.
void check_cores(const LaunchOptions& options, const Ground& place, int ranks_per_node) {
  const auto allows = [&](std::string_view word) {
    return std::any_of(
        options.launcher_arguments.begin(), options.launcher_arguments.end(),
        [&](const std::string& argument) { return argument.find(word) != std::string::npos; });
  };
  const bool is_known = place.reach == Reach::local && options.launcher == "mpirun" &&
                        !allows("hwthread") && !allows("overload");
  const auto ranks = (std::ssize(place.nodes) - options.spares) * ranks_per_node;
  const std::int64_t wanted = ranks * options.cpus_per_rank;
  const int cores = host_shape().cores;
  if (is_known && wanted > cores) {
    throw ConfigError(
        fmt::format("--cpus-per-rank {}: {} on this host would need {}, but it has {}",
                    options.cpus_per_rank, counted(ranks, "rank"), counted(wanted, "core"), cores));
  }
}

// Refuses a range without a port for the supervisor and each agent of this host. Nodes of the site
// list get no agent.
void check_ports(const PortRange& ports, const Ground& place, const std::string& site_list) {
  const std::string own = place.batch_node.empty() ? host_name() : place.batch_node;
  const std::map<std::string, std::string> excluded =
      site_list.empty() ? std::map<std::string, std::string>() : read_site_list(site_list);
  const auto agents =
      std::count_if(place.nodes.begin(), place.nodes.end(), [&](const NodeSpec& node) {
        return (place.reach == Reach::local || node.name == own) && !excluded.contains(node.name);
      });
  const int given = ports.last - ports.first + 1;
  if (ports.first > 0 && given < agents + 1) {
    throw ConfigError(fmt::format(
        "--ports {}-{} has {}, but this host needs {}: one for the supervisor and one for each "
        "agent",
        ports.first, ports.last, counted(given, "port"), agents + 1));
  }
}

LoadedConfig load_run(const std::vector<std::string>& run, char** environment) {
  if (!run.empty() && run.front() != "train") {
    throw ConfigError(fmt::format(
        "launch starts runs of 'train', not '{}': write -- train CONFIG [key=value ...]",
        run.front()));
  }
  if (run.size() < 2) {
    throw ConfigError(
        "no run is given: write it after '--', as in trireme launch ... -- train CONFIG [key=value "
        "...]");
  }
  return load_run_config(
      {.file = run[1], .arguments = {run.begin() + 2, run.end()}, .environment = environment});
}

// The processes on other nodes have other working directories, so the paths become absolute.
TlsSetting tls_of(const LaunchTls& tls) {
  const auto whole = [](const std::filesystem::path& path) {
    return path.empty() ? path : std::filesystem::absolute(path).lexically_normal();
  };
  return {tls.is_on, whole(tls.certificate), whole(tls.key), whole(tls.ca)};
}

CoursePlan course_of(const LaunchOptions& options, const Ground& place, const RunConfig& config,
                     int ranks_per_node) {
  CoursePlan course;
  const auto count = static_cast<int>(place.nodes.size());
  course.nodes_wanted = count - options.spares;
  course.least_nodes = options.min_nodes > 0 ? options.min_nodes : course.nodes_wanted;
  course.ranks_per_node = ranks_per_node;
  course.launcher = options.launcher;
  course.in_slurm = !place.job.empty();
  if (course.nodes_wanted < 1 || course.least_nodes > course.nodes_wanted) {
    throw ConfigError(
        fmt::format("--spares {} leaves {} of {} to train on, but at least {} must train: lower "
                    "--spares or --min-nodes",
                    options.spares, std::max(course.nodes_wanted, 0), counted(count, "node"),
                    std::max(course.least_nodes, 1)));
  }
  course.fits = [config, ranks_per_node](int nodes) {
    try {
      (void)make_layout(config, nodes * ranks_per_node, ranks_per_node);
      return true;
    } catch (const ConfigError&) {
      return false;
    }
  };
  // Report an impossible layout at once, with the formula.
  (void)make_layout(config, course.nodes_wanted * ranks_per_node, ranks_per_node);
  return course;
}

}  // namespace

LaunchPlan make_launch_plan(const LaunchOptions& options, char** environment) {
  const LoadedConfig loaded = load_run(options.run, environment);
  const RunConfig& config = loaded.config;
  check_folders(config);  // before the launch writes its lock and journal there
  check_place_of_run(config);
  check_own_limits();
  check_user(options);
  const Ground place = place_of(options);
  const int ranks_per_node =
      options.ranks_per_node > 0 ? options.ranks_per_node : std::max(place.ranks_per_node, 1);
  check_cores(options, place, ranks_per_node);
  LaunchPlan plan;
  plan.setting.program = std::filesystem::read_symlink("/proc/self/exe");
  plan.setting.starter = options.launcher == "srun" ? Starter::srun : Starter::mpirun;
  if (plan.setting.starter == Starter::srun && place.reach != Reach::slurm) {
    throw ConfigError("--launcher srun works inside a Slurm job only");
  }
  plan.setting.reach = place.reach;
  plan.setting.ssh = words_of(options.ssh);
  plan.setting.ranks_per_node = ranks_per_node;
  plan.setting.cpus_per_rank = options.cpus_per_rank;
  plan.setting.ports = parse_port_range(options.ports);
  plan.setting.tls = tls_of(launch_tls(loaded.binder));
  check_ports(plan.setting.ports, place, options.site_list);
  plan.setting.launcher_arguments = options.launcher_arguments;
  plan.setting.run = options.run;
  if (place.reach != Reach::local) {
    plan.setting.handed_on = names_to_hand_on(environment);
  }
  plan.course = course_of(options, place, config, ranks_per_node);
  plan.nodes = place.nodes;
  plan.on_event = config.launch.on_event;
  plan.event_deadline = config.launch.event_deadline;
  plan.json_log = config.log_format == "json";
  plan.run_folder = config.run_dir;
  plan.checkpoint_folder = config.checkpoint_dir();
  plan.health = options.health;
  plan.site_list = options.site_list;
  plan.slurm_job = place.job;
  plan.batch_node = place.batch_node;
  return plan;
}

AuditConfig audit_config_of(const LaunchOptions& options, char** environment) {
  return load_run(options.run, environment).config.audit;
}

}  // namespace trireme
