#include "src/app/study/acceptance_text.h"

#include <map>

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

// Says what the worst figure of a bad link was, or why there is none.
std::string measured_text(const AcceptVerdict& verdict) {
  if (verdict.findings.empty()) {
    return verdict.complaints.empty() ? "not measured" : verdict.complaints.front();
  }
  const AcceptFigure& worst = verdict.findings.front();
  return fmt::format("{} {}{}, typical {}", worst.name, figure_text(worst.value, worst.unit),
                     worst.details.empty() ? "" : " with " + worst.details,
                     figure_text(worst.typical, worst.unit));
}

std::string guilty_sentence(const Acceptance& acceptance, const std::string& node) {
  std::string text = fmt::format(
      "The links of {} are slow with known-good partners, too: its adapter, its cable or its port "
      "on the switch is at fault.",
      node);
  for (std::size_t i = 0; i < acceptance.partner_verdicts.size(); ++i) {
    const auto& [suspect, partner] = acceptance.partner_pairs[i];
    if (suspect == node) {
      text += fmt::format(" With {}: {}.", partner, measured_text(acceptance.partner_verdicts[i]));
    }
  }
  return text;
}

// Says what the measurements with known-good partners found about the ends of a bad link.
std::string bisection_text(const Acceptance& acceptance, const AcceptVerdict& link) {
  std::string text;
  bool both_fast = true;
  for (const std::string& node : link.nodes) {
    std::map<bool, std::vector<std::string>> partners;  // by whether the link with them is bad
    for (std::size_t i = 0; i < acceptance.partner_verdicts.size(); ++i) {
      const auto& [suspect, partner] = acceptance.partner_pairs[i];
      if (suspect == node) {
        partners[acceptance.partner_verdicts[i].bad()].push_back(partner);
      }
    }
    both_fast = both_fast && partners.contains(false);
    if (partners.empty()) {
      text += fmt::format(" There was no known-good partner to try {} with.", node);
    }
    for (const auto& [bad, names] : partners) {
      text +=
          fmt::format(" {} is {} with {}.", node, bad ? "slow" : "fast", fmt::join(names, " and "));
    }
  }
  return text + (both_fast ? " So the fault lies on the path between the two." : "");
}

// Bad links of which neither end is guilty by itself.
std::vector<const AcceptVerdict*> lonely_links(const Acceptance& acceptance) {
  std::vector<const AcceptVerdict*> links;
  for (const AcceptVerdict& link : acceptance.links) {
    if (link.bad() && !acceptance.guilty.contains(link.nodes[0]) &&
        !acceptance.guilty.contains(link.nodes[1])) {
      links.push_back(&link);
    }
  }
  return links;
}

std::string machine_text(const Acceptance& acceptance) {
  const auto bad = [](const std::vector<AcceptVerdict>& verdicts) {
    return std::count_if(verdicts.begin(), verdicts.end(),
                         [](const AcceptVerdict& verdict) { return verdict.bad(); });
  };
  return fmt::format(
      "machine {}: {} of {} bad, {} of {} bad; {}",
      acceptance.rejected()   ? "REJECTED"
      : acceptance.accepted() ? "ACCEPTED"
                              : "NOT JUDGED",
      bad(acceptance.nodes), counted(static_cast<std::int64_t>(acceptance.nodes.size()), "node"),
      bad(acceptance.links), counted(static_cast<std::int64_t>(acceptance.links.size()), "link"),
      format_seconds(acceptance.seconds));
}

// Says how many pairs were not measured, or "".
std::string omission_text(const Acceptance& acceptance) {
  const std::size_t count = acceptance.names.size();
  const std::size_t all = count * (count - 1) / 2;
  if (acceptance.profile.link.measures.empty() && all > 0) {
    return "the links were not measured, because link.measures in the profile is empty";
  }
  if (acceptance.links.size() >= all) {
    return "";
  }
  return fmt::format(
      "{} of all {} pairs were measured: {} of each node. link_rounds in the profile sets how many",
      acceptance.links.size(), all, acceptance.link_rounds);
}

Json to_json(const AcceptFigure& figure) {
  Json json = {{"name", figure.name},   {"value", figure.value},     {"typical", figure.typical},
               {"unit", figure.unit},   {"percent", figure.percent}, {"score", figure.score},
               {"limit", figure.limit}, {"details", figure.details}, {"agreed", nullptr}};
  if (figure.agreed) {
    json["agreed"] = {{"name", figure.agreed->name},
                      {"value", figure.agreed->value},
                      {"at_least", figure.more_is_better}};
  }
  return json;
}

Json to_json(const std::vector<AcceptFigure>& figures) {
  Json json = Json::array();
  for (const AcceptFigure& figure : figures) {
    json.push_back(to_json(figure));
  }
  return json;
}

// more: added to the sentence for the vendor.
Json to_json(const AcceptVerdict& verdict, int rounds, const std::string& more) {
  return {{"nodes", verdict.nodes},
          {"good", verdict.good()},
          {"judged", verdict.judged},
          {"findings", to_json(verdict.findings)},
          {"complaints", verdict.complaints},
          {"notes", verdict.notes},
          {"figures", to_json(verdict.figures)},
          {"sentence", verdict.bad() ? Json(sentence(verdict, rounds) + more) : Json(nullptr)}};
}

Json to_json(const AcceptProfile::Demands& demands) {
  Json limits = Json::object();
  for (const auto& [name, value] : demands.limits) {
    limits[name] = value;
  }
  return {{"measures", demands.measures},
          {"at_least", demands.at_least},
          {"score", demands.score},
          {"limits", limits}};
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
    if (verdict.bad()) {
      commands.push_back(drain_command(node, printable(reason(verdict))));
    } else if (acceptance.guilty.contains(node)) {
      commands.push_back(drain_command(node, "trireme accept: slow link with every partner"));
    }
  }
  return commands;
}

std::string doubt_text(const Acceptance& acceptance) {
  const auto unsure = [](const std::vector<AcceptVerdict>& verdicts) {
    return std::count_if(verdicts.begin(), verdicts.end(), [](const AcceptVerdict& verdict) {
      return !verdict.judged && !verdict.bad();
    });
  };
  std::string text = acceptance.profile_problem;
  for (const auto& [noun, verdicts] :
       {std::pair{"node", &acceptance.nodes}, {"link", &acceptance.links}}) {
    if (const auto count = unsure(*verdicts); count > 0) {
      text += fmt::format(
          "{}{} not judged, because fewer than three were measured, which cannot be compared, and "
          "{}.limits of the profile has no limit for them",
          text.empty() ? "" : "; ", counted(count, noun), noun);
    }
  }
  return text;
}

namespace {

void print_for_vendor(const Acceptance& acceptance) {
  fmt::print("\nFor the vendor:\n");
  for (const AcceptVerdict& verdict : acceptance.nodes) {
    if (verdict.bad()) {
      fmt::print("- {}\n", printable(sentence(verdict, acceptance.rounds)));
    }
  }
  for (const std::string& node : acceptance.guilty) {
    fmt::print("- {}\n", printable(guilty_sentence(acceptance, node)));
  }
  for (const AcceptVerdict* link : lonely_links(acceptance)) {
    fmt::print("- {}\n", printable(sentence(*link, 1) + bisection_text(acceptance, *link)));
  }
  const auto commands = drain_commands(acceptance);
  if (!commands.empty()) {
    fmt::print("\n{}\n", drain_heading(acceptance));
    for (const std::vector<std::string>& words : commands) {
      fmt::print("  {}\n", shell_words(words));
    }
  }
}

}  // namespace

void print_acceptance(const Acceptance& acceptance) {
  std::string notes;
  for (const std::vector<AcceptVerdict>* verdicts : {&acceptance.nodes, &acceptance.links}) {
    for (const AcceptVerdict& verdict : *verdicts) {
      const std::string name = fmt::format("{}", fmt::join(verdict.nodes, " - "));
      fmt::print("{:<24} {}\n", printable(name), printable(short_text(verdict)));
      for (const std::string& note : verdict.notes) {
        notes += fmt::format("# note: {}: {}\n", printable(name), printable(note));
      }
    }
  }
  fmt::print("# {}\n", machine_text(acceptance));
  for (const std::string& text :
       {omission_text(acceptance), doubt_text(acceptance),
        acceptance.drain_done ? std::string() : acceptance.shared_cause}) {
    if (!text.empty()) {
      fmt::print("# {}\n", printable(text));
    }
  }
  fmt::print("{}", notes);
  if (acceptance.rejected()) {
    print_for_vendor(acceptance);
  }
}

Json to_json(const Acceptance& acceptance) {
  Json nodes = Json::array();
  Json links = Json::array();
  Json tests = Json::array();
  Json commands = Json::array();
  for (const AcceptVerdict& verdict : acceptance.nodes) {
    nodes.push_back(to_json(verdict, acceptance.rounds, ""));
  }
  for (const AcceptVerdict& verdict : acceptance.links) {
    links.push_back(to_json(verdict, 1, bisection_text(acceptance, verdict)));
  }
  for (std::size_t i = 0; i < acceptance.partner_pairs.size(); ++i) {
    const auto& [suspect, partner] = acceptance.partner_pairs[i];
    tests.push_back({{"suspect", suspect},
                     {"partner", partner},
                     {"good", acceptance.partner_verdicts[i].good()},
                     {"figures", to_json(acceptance.partner_verdicts[i].figures)}});
  }
  for (const std::vector<std::string>& words : drain_commands(acceptance)) {
    commands.push_back(shell_words(words));
  }
  const std::string doubt = doubt_text(acceptance);
  return {{"schema", 1},
          {"accepted", acceptance.accepted()},
          {"verdict", acceptance.rejected()   ? "rejected"
                      : acceptance.accepted() ? "accepted"
                                              : "not judged"},
          {"doubt", doubt.empty() ? Json(nullptr) : Json(doubt)},
          {"program", version_json()},
          {"time", acceptance.time},
          {"profile",
           {{"file", acceptance.profile_file},
            {"sha256", acceptance.profile_sha256},
            {"node", to_json(acceptance.profile.node)},
            {"link", to_json(acceptance.profile.link)}}},
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
