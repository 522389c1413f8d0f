#include "src/app/study/accept_command.h"

#include <chrono>
#include <cstdlib>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "io/data/file_lock.h"
#include "slurm/job/host_list.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/written_files.h"
#include "src/app/study/accept_runner.h"
#include "src/app/study/acceptance_text.h"
#include "src/base/command.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/named_file.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kScontrolPatience{60};

struct AcceptOptions {
  std::string profile, folder, out;
  bool drain = false;
  bool drain_all = false;
  bool json = false;
};

std::vector<std::string> nodes_of(const AcceptProfile& profile, const std::string& file) {
  std::string list = profile.nodes;
  std::string origin = file + ": nodes";
  if (list.empty()) {
    const char* job = std::getenv("SLURM_JOB_NODELIST");
    if (job == nullptr) {
      throw ConfigError(
          "the profile names no nodes, and this is no Slurm job: set nodes in the profile, or run "
          "the command within salloc or sbatch");
    }
    list = job;
    origin = "SLURM_JOB_NODELIST";
  }
  try {
    std::vector<std::string> nodes = expand_host_list(list);
    std::set<std::string> seen;
    for (const std::string& node : nodes) {
      if (node.front() == '-' || !seen.insert(node).second) {  // the list refuses other characters
        throw ConfigError(fmt::format("'{}' is no name of a node, or occurs twice", node));
      }
    }
    return nodes;
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", origin, error.what()));
  }
}

std::set<std::string> bad_nodes(const std::vector<AcceptVerdict>& nodes) {
  std::set<std::string> bad;
  for (const AcceptVerdict& verdict : nodes) {
    if (verdict.bad()) {
      bad.insert(verdict.nodes.front());
    }
  }
  return bad;
}

// Judges the pairs of a partner test by what is typical of the whole machine.
std::vector<AcceptVerdict> judge_partners(std::vector<AcceptSubject> links,
                                          const std::vector<AcceptSubject>& tests,
                                          const AcceptProfile::Demands& demands) {
  std::vector<AcceptVerdict> verdicts;
  for (const AcceptSubject& test : tests) {
    links.push_back(test);
    verdicts.push_back(judge(links, demands).back());
    links.pop_back();
  }
  return verdicts;
}

void judge_links(const AcceptProfile& profile, AcceptRunner& runner, Acceptance& acceptance) {
  if (profile.link.measures.empty()) {
    return;
  }
  const NodePairRounds pairs = link_rounds(acceptance.names, profile.link_rounds);
  acceptance.link_rounds = pairs.size();
  const std::vector<AcceptSubject> links = runner.measure_links(pairs, "l");
  acceptance.profile_problem = refused_problem(links, "link");
  if (!acceptance.profile_problem.empty()) {
    return;
  }
  acceptance.links = judge(links, profile.link);
  if (!links.empty()) {
    acceptance.profile_problem = limit_problem(links, profile.link, "link.limits");
  }
  const NodePairRounds tests =
      disjoint_rounds(partner_tests(acceptance.links, bad_nodes(acceptance.nodes)));
  for (const auto& round : tests) {
    acceptance.partner_pairs.insert(acceptance.partner_pairs.end(), round.begin(), round.end());
  }
  if (!tests.empty()) {
    fmt::print(stderr, "accept: bad links, their ends with known-good partners\n");
    acceptance.partner_verdicts =
        judge_partners(links, runner.measure_links(tests, "p"), profile.link);
    acceptance.guilty = guilty_ends(acceptance.partner_pairs, acceptance.partner_verdicts);
  }
}

Acceptance accept(const AcceptProfile& profile, const AcceptOptions& options) {
  Acceptance acceptance;
  const Stopwatch watch;
  acceptance.time = static_cast<double>(std::time(nullptr));
  acceptance.profile = profile;
  acceptance.profile_file = options.profile;
  acceptance.profile_sha256 = sha256_hex(read_file(options.profile));
  acceptance.names = nodes_of(profile, options.profile);
  AcceptRunner runner(profile, std::filesystem::absolute(options.folder));
  acceptance.nodes = judge(runner.measure_nodes(acceptance.names), profile.node);
  acceptance.rounds = runner.rounds_done();
  judge_links(profile, runner, acceptance);
  acceptance.shared_cause = shared_cause(drain_commands(acceptance).size(), acceptance.names.size(),
                                         profile.drain_at_most);
  acceptance.seconds = watch.seconds();
  return acceptance;
}

void drain(const Acceptance& acceptance) {
  for (const std::vector<std::string>& words : drain_commands(acceptance)) {
    const CommandResult result = run_command(words, kScontrolPatience);
    if (!result.good()) {
      throw IoError(fmt::format("a node could not be drained: {}", result.complaint("scontrol")));
    }
    throw_if_interrupted();
  }
}

void write_verdicts(const Acceptance& acceptance, const AcceptOptions& options) {
  const std::string text = json_text(to_json(acceptance)) + "\n";
  write_file_durably(std::filesystem::path(options.folder) / "acceptance.json", text);
  if (!options.out.empty()) {
    write_named_file(options.out, text);
  }
}

// Makes the folder. Two acceptances in one folder would take each other's files for their own.
FileLock locked_folder(const std::filesystem::path& folder) {
  make_directories(folder);
  std::optional<FileLock> lock = FileLock::try_take(folder / ".accept.lock");
  if (!lock) {
    throw PolicyError(fmt::format(
        "another `trireme accept` is at work in {}: give each its own --dir", folder.string()));
  }
  check_named_file(folder / "acceptance.json");
  std::filesystem::remove(folder / "acceptance.json");  // of an earlier call
  return std::move(*lock);
}

void run(AcceptOptions& options, int& exit_code, const UsageCheck& check) {
  const AcceptProfile profile = load_accept_profile(options.profile);
  check_measures(profile, options.profile, check);
  if (!options.out.empty()) {
    check_named_file(options.out);
    check_outside_of({"-J", options.out}, options.folder,
                     "which holds what the same command measures");
  }
  if (options.folder.empty()) {
    options.folder = fmt::format("accept-{:%Y%m%d-%H%M%S}", fmt::gmtime(std::time(nullptr)));
  }
  if (const std::string problem = problem_with_place_of_acceptance(options.folder);
      !problem.empty()) {
    throw ConfigError(fmt::format("--dir: {} {}: name another folder", printable(options.folder),
                                  printable(problem)));
  }
  (void)nodes_of(profile, options.profile);  // before the folder is made
  const FileLock lock = locked_folder(options.folder);
  Acceptance acceptance = accept(profile, options);
  acceptance.drain_asked = options.drain || options.drain_all;
  const bool withheld =
      acceptance.drain_asked && !options.drain_all && !acceptance.shared_cause.empty();
  write_verdicts(acceptance, options);
  if (acceptance.drain_asked && !withheld) {
    drain(acceptance);
    acceptance.drain_done = true;
    write_verdicts(acceptance, options);
  }
  options.json ? print_json(to_json(acceptance)) : print_acceptance(acceptance);
  if (withheld) {
    throw PolicyError("no node was drained: " + acceptance.shared_cause);
  }
  if (acceptance.rejected()) {
    exit_code = static_cast<int>(ExitCode::below_threshold);
  } else if (!acceptance.accepted()) {
    throw ConfigError("the machine is not judged: " + doubt_text(acceptance));
  }
}

}  // namespace

void add_accept_command(CommandLine& app, int& exit_code, UsageCheck check) {
  CommandLine& command =
      app.add_command("accept", "Measure every node and link of a machine and judge them");
  const auto options = std::make_shared<AcceptOptions>();
  command
      .add_option("PROFILE", options->profile,
                  "What is measured and demanded: a file like those in configs/accept/")
      .required();
  command
      .add_option("--dir", options->folder,
                  "Folder for what the benchmarks write, seen by all nodes (default: accept-DATE)")
      .type_name("DIR");
  command.add_flag(
      "--drain", options->drain,
      "Drain the bad nodes in Slurm instead of only printing the commands, unless they "
      "are too many to be at fault themselves (drain_at_most in the profile)");
  command.add_flag("--drain-all", options->drain_all, "Drain the bad nodes, however many they are");
  command.add_option("-J", options->out, "Write the verdicts to FILE as JSON")
      .type_name("FILE")
      .written();
  command.add_flag("--json", options->json, "Print the same JSON");
  command.footer(
      "Examples:\n"
      "  salloc -N 16 --exclusive trireme accept configs/accept/slurm.yaml\n"
      "  trireme accept site-accept.yaml --drain -J acceptance.json\n"
      "Exits with 0 if the machine is accepted, 2 if something could not be judged, such as two "
      "nodes without limits, 4 if a node or a link is bad, and 77 if --drain "
      "drained nothing because more than half of the nodes are bad. A bad link is "
      "measured again with known-good partners at each end, which tells whether the node or the "
      "path between the two is at fault. docs/studies.md describes the profile.");
  command.callback([options, &exit_code, check = std::move(check)] {
    run_interruptibly([&] { run(*options, exit_code, check); },
                      [&] {
                        say(
                            fmt::format("accept: interrupted; the measurements were ended, and {} "
                                        "holds those that were complete",
                                        options->folder));
                      });
  });
}

}  // namespace trireme
