#include "src/app/study/acceptance_text.h"

#include <fmt/format.h>

#include "slurm/render/shell_words.h"
#include "src/app/command/version.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> drain_command(const std::string& node, const std::string& why) {
  return {"scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + why};
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

std::string drain_heading(const Acceptance& acceptance) {
  if (acceptance.drain_done) {
    return "Drained:";
  }
  return acceptance.shared_cause.empty()
             ? "To drain these nodes (or repeat with --drain):"
             : "To drain these nodes all the same (or repeat with --drain-all):";
}

}  // namespace

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

void print_acceptance(const Acceptance& acceptance) {
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
  if (!acceptance.shared_cause.empty() && !acceptance.drain_done) {
    fmt::print("# {}\n", acceptance.shared_cause);
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
    fmt::print("\n{}\n", drain_heading(acceptance));
    for (const std::vector<std::string>& words : commands) {
      fmt::print("  {}\n", shell_words(words));
    }
  }
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
          {"drain_commands", commands},
          {"drain",
           {{"asked", acceptance.drain_asked},
            {"done", acceptance.drain_done},
            {"shared_cause",
             acceptance.shared_cause.empty() ? Json(nullptr) : Json(acceptance.shared_cause)}}}};
}

}  // namespace trireme
