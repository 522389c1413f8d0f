#include "src/app/study/accept_command.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "slurm/job/host_list.h"
#include "slurm/render/shell_words.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/study/accept_runner.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kScontrolPatience{60};

struct AcceptOptions {
  std::string profile, folder, out;
  bool drain = false;
  bool json = false;
};

struct Acceptance {
  std::vector<std::string> names;
  std::vector<AcceptVerdict> nodes, links;
  std::set<std::string> guilty;  // nodes whose links are bad with known-good partners, too
  std::vector<std::pair<std::string, std::string>> partner_pairs;
  int rounds = 0;
  std::size_t link_rounds = 0;
  double seconds = 0;

  bool accepted() const {
    const auto good = [](const AcceptVerdict& verdict) { return verdict.good(); };
    return std::all_of(nodes.begin(), nodes.end(), good) &&
           std::all_of(links.begin(), links.end(), good);
  }
};

std::vector<std::string> nodes_of(const AcceptProfile& profile) {
  std::string list = profile.nodes;
  if (list.empty()) {
    const char* job = std::getenv("SLURM_JOB_NODELIST");
    if (job == nullptr) {
      throw ConfigError(
          "the profile names no nodes, and this is no Slurm job: set nodes in the profile, or run "
          "the command within salloc or sbatch");
    }
    list = job;
  }
  std::vector<std::string> nodes = expand_host_list(list);
  std::set<std::string> seen;
  for (const std::string& node : nodes) {
    if (node.front() == '-' || node.find('/') != std::string::npos || !seen.insert(node).second) {
      throw ConfigError(fmt::format("'{}' is no name of a node, or occurs twice", node));
    }
  }
  return nodes;
}

std::set<std::string> bad_nodes(const std::vector<AcceptVerdict>& nodes) {
  std::set<std::string> bad;
  for (const AcceptVerdict& verdict : nodes) {
    if (!verdict.good()) {
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

Acceptance accept(const AcceptProfile& profile, const std::filesystem::path& folder) {
  Acceptance acceptance;
  const Stopwatch watch;
  acceptance.names = nodes_of(profile);
  AcceptRunner runner(profile, folder);
  acceptance.nodes = judge(runner.measure_nodes(acceptance.names), profile.node);
  acceptance.rounds = runner.rounds_done();
  const NodePairRounds pairs = link_rounds(acceptance.names, profile.link_rounds);
  acceptance.link_rounds = pairs.size();
  const std::vector<AcceptSubject> links = runner.measure_links(pairs, "l");
  acceptance.links = judge(links, profile.link);
  const NodePairRounds tests =
      disjoint_rounds(partner_tests(acceptance.links, bad_nodes(acceptance.nodes)));
  for (const auto& round : tests) {
    acceptance.partner_pairs.insert(acceptance.partner_pairs.end(), round.begin(), round.end());
  }
  if (!tests.empty()) {
    fmt::print(stderr, "accept: bad links, their ends with known-good partners\n");
    acceptance.guilty =
        guilty_ends(acceptance.partner_pairs,
                    judge_partners(links, runner.measure_links(tests, "p"), profile.link));
  }
  acceptance.seconds = watch.seconds();
  return acceptance;
}

std::vector<std::string> drain_command(const std::string& node, const std::string& why) {
  return {"scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + why};
}

// Returns the command for each node that should not run jobs.
std::vector<std::vector<std::string>> drain_commands(const Acceptance& acceptance) {
  std::vector<std::vector<std::string>> commands;
  for (const AcceptVerdict& verdict : acceptance.nodes) {
    const std::string& node = verdict.nodes.front();
    if (!verdict.good()) {
      commands.push_back(drain_command(node, printable(reason(verdict))));
    } else if (acceptance.guilty.contains(node)) {
      commands.push_back(drain_command(node, "trireme accept: slow link with every partner"));
    }
  }
  return commands;
}

std::string guilty_sentence(const std::string& node) {
  return fmt::format(
      "The links of {} are slow with known-good partners, too: its adapter, its cable or its port "
      "on the switch is at fault.",
      node);
}

// Bad links of which neither end is guilty by itself.
std::vector<const AcceptVerdict*> lonely_links(const Acceptance& acceptance) {
  std::vector<const AcceptVerdict*> links;
  for (const AcceptVerdict& link : acceptance.links) {
    if (!link.good() && !acceptance.guilty.contains(link.nodes[0]) &&
        !acceptance.guilty.contains(link.nodes[1])) {
      links.push_back(&link);
    }
  }
  return links;
}

std::string machine_text(const Acceptance& acceptance) {
  const auto bad = [](const std::vector<AcceptVerdict>& verdicts) {
    return std::count_if(verdicts.begin(), verdicts.end(),
                         [](const AcceptVerdict& verdict) { return !verdict.good(); });
  };
  return fmt::format(
      "machine {}: {} of {} bad, {} of {} bad; {}", acceptance.accepted() ? "ACCEPTED" : "REJECTED",
      bad(acceptance.nodes), counted(static_cast<std::int64_t>(acceptance.nodes.size()), "node"),
      bad(acceptance.links), counted(static_cast<std::int64_t>(acceptance.links.size()), "link"),
      format_seconds(acceptance.seconds));
}

// Says how many pairs were not measured, or "".
std::string omission_text(const Acceptance& acceptance) {
  const std::size_t count = acceptance.names.size();
  const std::size_t all = count * (count - 1) / 2;
  if (acceptance.links.size() >= all) {
    return "";
  }
  return fmt::format(
      "{} of all {} pairs were measured: {} of each node. link_rounds in the profile sets how many",
      acceptance.links.size(), all, acceptance.link_rounds);
}

// What one cause that all nodes share looks like, such as an error in the profile, or "".
std::string shared_cause_text(const Acceptance& acceptance) {
  const auto bad = [](const AcceptVerdict& verdict) { return !verdict.good(); };
  if (acceptance.nodes.size() < 2 || !std::ranges::all_of(acceptance.nodes, bad)) {
    return "";
  }
  return "all nodes are bad: before draining them, look for a cause that they share, such as "
         "node.start or `seconds` in the profile, or other programs";
}

std::string short_verdict(const AcceptVerdict& verdict) {
  if (verdict.good()) {
    return "good";
  }
  if (verdict.findings.empty()) {
    return "BAD: " + verdict.complaints.front();
  }
  const AcceptFinding& worst = verdict.findings.front();
  return fmt::format("BAD: {} at {:.0f} %", worst.name, worst.percent);
}

void print_acceptance(const Acceptance& acceptance, bool drained) {
  for (const std::vector<AcceptVerdict>* verdicts : {&acceptance.nodes, &acceptance.links}) {
    for (const AcceptVerdict& verdict : *verdicts) {
      const std::string name = fmt::format("{}", fmt::join(verdict.nodes, " - "));
      fmt::print("{:<24} {}\n", printable(name), printable(short_verdict(verdict)));
    }
  }
  fmt::print("# {}\n", machine_text(acceptance));
  if (const std::string omission = omission_text(acceptance); !omission.empty()) {
    fmt::print("# {}\n", omission);
  }
  if (const std::string cause = shared_cause_text(acceptance); !cause.empty()) {
    fmt::print("# {}\n", cause);
  }
  if (acceptance.accepted()) {
    return;
  }
  fmt::print("\nFor the vendor:\n");
  for (const AcceptVerdict& verdict : acceptance.nodes) {
    if (!verdict.good()) {
      fmt::print("- {}\n", printable(sentence(verdict, acceptance.rounds)));
    }
  }
  for (const std::string& node : acceptance.guilty) {
    fmt::print("- {}\n", printable(guilty_sentence(node)));
  }
  for (const AcceptVerdict* link : lonely_links(acceptance)) {
    fmt::print("- {}\n", printable(sentence(*link, 1)));
  }
  const auto commands = drain_commands(acceptance);
  if (!commands.empty()) {
    fmt::print("\n{}\n", drained ? "Drained:" : "To drain these nodes (or repeat with --drain):");
    for (const std::vector<std::string>& words : commands) {
      fmt::print("  {}\n", shell_words(words));
    }
  }
}

Json to_json(const AcceptVerdict& verdict, int rounds) {
  Json findings = Json::array();
  for (const AcceptFinding& finding : verdict.findings) {
    findings.push_back({{"name", finding.name},
                        {"value", finding.value},
                        {"typical", finding.typical},
                        {"unit", finding.unit},
                        {"percent", finding.percent},
                        {"score", finding.score},
                        {"limit", finding.limit}});
  }
  return {{"nodes", verdict.nodes},
          {"good", verdict.good()},
          {"findings", findings},
          {"complaints", verdict.complaints},
          {"sentence", verdict.good() ? Json(nullptr) : Json(sentence(verdict, rounds))}};
}

Json to_json(const Acceptance& acceptance) {
  Json nodes = Json::array();
  Json links = Json::array();
  Json tests = Json::array();
  Json commands = Json::array();
  for (const AcceptVerdict& verdict : acceptance.nodes) {
    nodes.push_back(to_json(verdict, acceptance.rounds));
  }
  for (const AcceptVerdict& verdict : acceptance.links) {
    links.push_back(to_json(verdict, 1));
  }
  for (const auto& [suspect, partner] : acceptance.partner_pairs) {
    tests.push_back({{"suspect", suspect}, {"partner", partner}});
  }
  for (const std::vector<std::string>& words : drain_commands(acceptance)) {
    commands.push_back(shell_words(words));
  }
  return {{"schema", 1},
          {"accepted", acceptance.accepted()},
          {"program", version_json()},
          {"seconds", acceptance.seconds},
          {"rounds", acceptance.rounds},
          {"link_rounds", acceptance.link_rounds},
          {"nodes", nodes},
          {"links", links},
          {"partner_tests", tests},
          {"nodes_with_bad_links", acceptance.guilty},
          {"drain_commands", commands}};
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

void run(AcceptOptions& options, int& exit_code) {
  const AcceptProfile profile = load_accept_profile(options.profile);
  if (options.folder.empty()) {
    options.folder = fmt::format("accept-{:%Y%m%d-%H%M%S}", fmt::gmtime(std::time(nullptr)));
  }
  const std::filesystem::path folder = options.folder;
  make_directories(folder);
  const Acceptance acceptance = accept(profile, std::filesystem::absolute(folder));
  const Json document = to_json(acceptance);
  write_file_durably(folder / "acceptance.json", json_text(document) + "\n");
  if (!options.out.empty()) {
    write_named_file(options.out, json_text(document) + "\n");
  }
  if (options.drain) {
    drain(acceptance);
  }
  options.json ? print_json(document) : print_acceptance(acceptance, options.drain);
  if (!acceptance.accepted()) {
    exit_code = static_cast<int>(ExitCode::below_threshold);
  }
}

}  // namespace

void add_accept_command(CommandLine& app, int& exit_code) {
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
  command.add_flag("--drain", options->drain,
                   "Drain the bad nodes in Slurm instead of only printing the commands");
  command.add_option("-J", options->out, "Write the verdicts to FILE as JSON").type_name("FILE");
  command.add_flag("--json", options->json, "Print the same JSON");
  command.footer(
      "Examples:\n"
      "  salloc -N 16 --exclusive trireme accept configs/accept/slurm.yaml\n"
      "  trireme accept site-accept.yaml --drain -J acceptance.json\n"
      "Exits with 0 if the machine is accepted and 4 if a node or a link is bad. A bad link is "
      "measured again with known-good partners at each end, which tells whether the node or the "
      "path between the two is at fault. docs/studies.md describes the profile.");
  command.callback([options, &exit_code] {
    run_interruptibly([&] { run(*options, exit_code); },
                      [&] {
                        say(
                            fmt::format("accept: interrupted; the measurements were ended, and {} "
                                        "holds those that were complete",
                                        options->folder));
                      });
  });
}

}  // namespace trireme
