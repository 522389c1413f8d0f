#include "src/app/site/doctor_command.h"

#include <cstdlib>
#include <memory>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "slurm/doctor/node_checks.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/site/launch_checks.h"
#include "src/app/site/policy_checks.h"
#include "src/app/site/transport_checks.h"
#include "src/app/site/weight_checks.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/shortened.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"
#include "src/train/saving/teacher_weights.h"
#include "src/train/start/startup.h"

namespace trireme {
namespace {

// A network that needs longer than this for a few numbers is unusable.
constexpr std::chrono::seconds kFabricDeadline{60};

struct DoctorOptions {
  std::string config;
  std::vector<std::string> arguments;
  PlannedRanks planned;
  bool json = false;
};

// Holds all ranks if MPI can connect them, and otherwise this process alone.
struct Ranks {
  MpiSession* session = nullptr;
  std::unique_ptr<Communicator> alone;
  std::vector<RankPlace> places;

  Communicator& world() { return session == nullptr ? *alone : session->world(); }
};

Ranks start(AppContext& context, std::vector<Finding>& found) {
  Ranks ranks;
  try {
    ranks.session = &context.session();
    ranks.places = ranks.session->places();
  } catch (const ConfigError& error) {
    found.push_back(error_of(error, host_name()));
    ranks.alone = std::make_unique<SelfCommunicator>();
    RankPlace place;
    place.host = host_name();
    place.binding = current_binding();
    ranks.places = {place};
  }
  return ranks;
}

// Returns whether this process prints the report. Of several tasks that MPI did not connect, only
// the first does.
bool speaks(Ranks& ranks) {
  const char* const task = std::getenv("SLURM_PROCID");
  return ranks.world().rank() == 0 &&
         (ranks.session != nullptr || task == nullptr || std::string_view(task) == "0");
}

std::vector<Finding> gathered(const std::vector<Finding>& own, Communicator& world) {
  std::vector<Finding> all;
  for (const std::string& text : all_gather_text(world, json_line(to_json(own)))) {
    for (Finding& finding : findings_from_json(nlohmann::json::parse(text))) {
      all.push_back(std::move(finding));
    }
  }
  return all;
}

std::vector<std::string> gathered(const std::vector<std::string>& own, Communicator& world) {
  std::vector<std::string> all;
  for (const std::string& text : all_gather_text(world, fmt::format("{}", fmt::join(own, "\n")))) {
    if (!text.empty()) {
      all.push_back(text);
    }
  }
  return all;
}

std::vector<RankFacts> gathered(const RankFacts& own, Communicator& world) {
  std::vector<RankFacts> all;
  for (const std::string& text : all_gather_text(world, json_line(to_json(own)))) {
    all.push_back(facts_from_json(nlohmann::json::parse(text)));
  }
  const double first = all.front().clock_ahead_seconds;
  for (RankFacts& facts : all) {
    facts.clock_ahead_seconds -= first;
  }
  return all;
}

// Exchanges a little data over the transport that the run will use. An error ends the communication
// of this rank and, after the deadline, of the other ranks.
void try_fabric(const RunConfig& config, MpiSession& session, std::vector<Finding>& found) {
  try {
    session.world().set_deadline(kFabricDeadline);
    const auto world =
        session.make_world(parse_backend(config.comm_backend), {}, [&](const std::string& text) {
          found.push_back(
              warning_of(text, "all ranks", "set comm.backend to the transport that you want"));
        });
    world->set_deadline(kFabricDeadline);
    const std::int64_t sum = all_reduce_value(*world, std::int64_t{1}, ReduceOp::sum);
    append(found,
           check_transport(config.security, session.place().host, spans_hosts(session.places())));
    if (sum != world->size()) {
      throw CommError(fmt::format("an all-reduce of ones over {} gave {}",
                                  counted(world->size(), "rank"), sum));
    }
  } catch (const Error& error) {
    found.push_back(error_of(error, session.place().host));
  }
}

// Several ranks need a launcher: mpirun outside a Slurm job, which does not start as root.
std::vector<Finding> check_user(const PlannedRanks& planned, const std::string& host) {
  std::vector<Finding> found = check_user_of_mpirun(::geteuid(), process_environment(), host);
  for (Finding& finding : found) {
    if (planned.world > 1 && !slurm_job(process_environment())) {
      finding.severity = Severity::error;
      finding.code = ExitCode::usage;
    }
  }
  return found;
}

std::vector<Finding> compare(const std::vector<RankFacts>& facts, const RunConfig& config) {
  std::vector<Finding> found = compare_versions(facts, config.reproducibility);
  append(found, compare_clocks(facts));
  append(found, check_cores(facts));
  append(found, check_shared_folder(facts));
  return found;
}

// summaries: receives a line on the GPUs of each host.
std::vector<Finding> examine(const DoctorOptions& options, const AccessSource& access, Ranks& ranks,
                             std::vector<Finding> found, std::vector<std::string>& summaries) {
  Communicator& world = ranks.world();
  std::optional<LoadedConfig> loaded;
  try {
    loaded = load_run_config(
        {.file = options.config, .arguments = options.arguments, .environment = environ});
  } catch (const Error& error) {
    found.push_back(error_of(error, host_name()));
  }
  if (all_reduce_value(world, std::int64_t{loaded ? 0 : 1}, ReduceOp::max) > 0) {
    return gathered(found, world);
  }
  try {
    check_same_config(world, *loaded);
    loaded->config = with_teacher(std::move(loaded->config), world);
  } catch (const Error& error) {
    found.push_back(error_of(error, "all ranks"));
    return found;
  }
  const RunConfig& config = loaded->config;
  LaunchChecks checks(config, world, ranks.places);
  if (ranks.session != nullptr) {
    append(found, check_tasks(process_environment(), world.size(), ranks.places.front().host));
  }
  const bool started_alone = world.size() == 1 && !process_environment()("OMPI_COMM_WORLD_SIZE") &&
                             !process_environment()("PMIX_RANK");
  if (started_alone) {
    append(found, check_user(options.planned, ranks.places.front().host));
  }
  // In the order of a start, whose first error determines the exit code.
  append(found, checks.host(options.planned));
  append(found, check_policy(access, config, host_name()));
  append(found, check_taken_weights(config, world));
  append(found, checks.devices(options.planned, summaries));
  const std::vector<Finding> layout = checks.layout(options.planned);
  append(found, layout);
  const bool is_impossible = std::any_of(layout.begin(), layout.end(), [](const Finding& finding) {
    return finding.severity == Severity::error;
  });
  // A model that does not fit is too large for the checks of kernels, too.
  if (all_reduce_value(world, std::int64_t{is_impossible ? 1 : 0}, ReduceOp::max) == 0) {
    append(found, checks.numbers());
  }
  append(found, checks.after_layout());
  const std::string mpi = ranks.session == nullptr ? "none" : ranks.session->library_version();
  const std::vector<RankFacts> facts = gathered(checks.facts(mpi), world);
  found = gathered(found, world);
  summaries = gathered(summaries, world);
  append(found, compare(facts, config));
  const bool sound = merged(found).empty() || merged(found).front().severity != Severity::error;
  if (sound && ranks.session != nullptr && world.size() > 1) {
    std::vector<Finding> fabric;
    try_fabric(config, *ranks.session, fabric);
    // Gather over MPI's own communicator, which an error in `fabric` does not affect.
    append(found, gathered(fabric, ranks.session->world()));
  }
  return found;
}

// Returns on what this program can compute.
std::string back_end_line() {
  switch (cuda::back_end()) {
    case cuda::BackEnd::none:
      return "CPUs only (built without CUDA)";
    case cuda::BackEnd::simulated:
      return fmt::format("CPUs, and a {} without speed, for tests", cuda::back_end_text());
    case cuda::BackEnd::real:
      break;
  }
  return fmt::format("CPUs and GPUs ({})", cuda::back_end_text());
}

void print(const std::vector<Finding>& found, const std::vector<std::string>& summaries, int ranks,
           int planned) {
  fmt::print("program  computes on {}\n", back_end_line());
  for (const std::string& summary : summaries) {
    fmt::print("device   {}\n", printable(summary));
  }
  std::size_t errors = 0;
  for (const Finding& finding : found) {
    const bool error = finding.severity == Severity::error;
    errors += error ? 1 : 0;
    fmt::print("{}  {}: {}\n", error ? "error  " : "warning", printable(finding.where),
               printable_lines(shortened(finding.what)));
    if (!finding.remedy.empty()) {
      fmt::print("         {}\n", printable_lines(finding.remedy));
    }
  }
  const ExitCode code = exit_code_of(found);
  const std::string plan =
      planned > 0 && planned != ranks
          ? fmt::format(", checking a planned launch of {}", counted(planned, "rank"))
          : "";
  fmt::print("doctor: {}{}: {}, {}: {}\n", counted(ranks, "rank"), plan, counted(errors, "error"),
             counted(found.size() - errors, "warning"),
             errors > 0
                 ? fmt::format("this launch would end with exit code {}", static_cast<int>(code))
             : found.empty() ? "no problems found"
                             : "it will run");
}

void doctor(const DoctorOptions& options, AppContext& context) {
  std::vector<Finding> found;
  Ranks ranks = start(context, found);
  std::vector<std::string> summaries;
  const auto access = [&]() -> const Access& { return context.access(); };
  found = merged(examine(options, access, ranks, std::move(found), summaries));
  context.exit_code = static_cast<int>(exit_code_of(found));
  if (!speaks(ranks)) {
    return;
  }
  if (options.json) {
    print_json({{"schema", 1},
                {"ranks", ranks.world().size()},
                {"exit_code", context.exit_code},
                {"gpu_back_end", cuda::back_end_text()},
                {"devices", summaries},
                {"findings", to_json(found)}});
  } else {
    print(found, summaries, ranks.world().size(), options.planned.world);
  }
}

}  // namespace

void add_doctor_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command(
      "doctor", "Check a launch for problems; run alone, or under the same mpirun or srun line");
  const auto options = std::make_shared<DoctorOptions>();
  command.add_option("CONFIG", options->config, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options->arguments,
                     "Configuration keys to override, as in train.steps=100");
  command
      .add_option("--ranks", options->planned.world,
                  "Check the layout for N ranks (default: the ranks of this launch)")
      .check(integer_within(1, 10'000'000));
  command.add_option("--ranks-per-node", options->planned.per_host, "Ranks per node, with --ranks")
      .no_default()
      .check(integer_within(1, 4096));
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  mpirun -n 8 trireme doctor run.yaml\n"
      "  trireme doctor run.yaml parallel.tp=2 --ranks 64 --ranks-per-node 8\n"
      "On nodes with GPUs, the checks cover the driver, the GPUs and what slows NCCL down; "
      "docs/gpu.md lists them. "
      "Exits with 0 if there are no problems, with 4 if there are only warnings, and otherwise "
      "with "
      "the code that the launch would exit with.");
  command.callback([options, &context] { doctor(*options, context); });
}

}  // namespace trireme
