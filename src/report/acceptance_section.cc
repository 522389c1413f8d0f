#include "src/report/acceptance_section.h"

#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/report/line_figure.h"

namespace trireme {
namespace {

constexpr std::size_t kMostVerdicts = 2000;  // in a table

// Returns a number that may be null.
std::string number_or_dash(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = field(object, name);
  return value.is_number() ? number_text(value.get<double>()) : "-";
}

std::string limit_text(const nlohmann::json& figure) {
  const auto agreed = figure.find("agreed");
  if (agreed == figure.end() || !agreed->is_object()) {
    return "-";
  }
  return fmt::format("at {} {}{}", flag_field(*agreed, "at_least") ? "least" : "most",
                     number_or_dash(*agreed, "value"),
                     flag_field(figure, "limit") ? ", MISSED" : "");
}

std::string finding_text(const nlohmann::json& finding) {
  const std::string limit = limit_text(finding);
  return fmt::format("{}: {} {} ({} % of the typical {}{})", text_field(finding, "name"),
                     number_or_dash(finding, "value"), text_field(finding, "unit"),
                     number_or_dash(finding, "percent"), number_or_dash(finding, "typical"),
                     limit == "-" ? "" : "; agreed: " + limit);
}

// Returns the names of a verdict's nodes: one for a node, two for a link.
std::string subject_of(const nlohmann::json& verdict) {
  std::string text;
  for (const nlohmann::json& node : array_field(verdict, "nodes")) {
    if (!node.is_string()) {
      throw DataError("field 'nodes' holds something else than names");
    }
    text += (text.empty() ? "" : " - ") + node.get<std::string>();
  }
  return text;
}

// Adds a table of what was measured, if the document has it.
void add_figures(DocSection& section, const std::string& what, const nlohmann::json& verdicts) {
  DocTable table{what, {"name", "figure", "median", "typical", "unit", "%", "limit"}, {}};
  std::size_t all = 0;
  for (const nlohmann::json& verdict : verdicts) {
    if (!verdict.contains("figures")) {
      continue;  // of an older program
    }
    for (const nlohmann::json& figure : array_field(verdict, "figures")) {
      if (++all <= kMostVerdicts) {
        const std::string& details = text_field(figure, "details");
        table.rows.push_back({subject_of(verdict),
                              text_field(figure, "name") + (details.empty() ? "" : " " + details),
                              number_or_dash(figure, "value"), number_or_dash(figure, "typical"),
                              text_field(figure, "unit"), number_or_dash(figure, "percent"),
                              limit_text(figure)});
      }
    }
  }
  if (all > kMostVerdicts) {
    table.caption += fmt::format(" (the first {} of {})", kMostVerdicts, all);
  }
  if (all > 0) {
    section.tables.push_back(std::move(table));
  }
}

// Says when and by which profile the machine was judged, if the document has it.
void add_profile(DocSection& section, const nlohmann::json& document) {
  const auto profile = document.find("profile");
  const auto time = document.find("time");
  if (profile == document.end() || time == document.end() || !time->is_number()) {
    return;  // of an older program
  }
  constexpr double kMostTime = 2.5e11;  // seconds; a year with four digits
  const double seconds = std::clamp(time->get<double>(), 0.0, kMostTime);
  section.paragraphs.push_back(
      fmt::format("Measured at {:%Y-%m-%d %H:%M} UTC, judged by the profile {} (SHA-256 {}).",
                  fmt::gmtime(static_cast<std::time_t>(seconds)), text_field(*profile, "file"),
                  text_field(*profile, "sha256")));
  for (const char* const which : {"node", "link"}) {
    const nlohmann::json& demands = object_field(*profile, which);
    std::string limits;
    for (const auto& [name, value] : object_field(demands, "limits").items()) {
      limits += fmt::format("{}{}={}", limits.empty() ? "" : ", ", name,
                            value.is_number() ? number_text(value.get<double>()) : "-");
    }
    section.paragraphs.push_back(
        fmt::format("Demanded of each {}: {} % of the typical speed, unless it is within {} robust "
                    "standard deviations; limits: {}.",
                    which, number_or_dash(demands, "at_least"), number_or_dash(demands, "score"),
                    limits.empty() ? "none" : limits));
  }
}

// Adds a table of verdicts, the bad ones first, and the sentences about those.
void add_verdicts(DocSection& section, const std::string& what, const nlohmann::json& verdicts) {
  DocTable good{what, {"name", "verdict", "findings"}, {}};
  DocTable table = good;
  for (const nlohmann::json& verdict : verdicts) {
    const bool is_good = flag_field(verdict, "good");
    std::string findings;
    for (const nlohmann::json& finding : array_field(verdict, "findings")) {
      findings += (findings.empty() ? "" : "; ") + finding_text(finding);
    }
    for (const nlohmann::json& complaint : array_field(verdict, "complaints")) {
      findings += (findings.empty() ? "" : "; ") +
                  (complaint.is_string() ? complaint.get<std::string>() : complaint.dump());
    }
    if (const auto notes = verdict.find("notes"); notes != verdict.end() && notes->is_array()) {
      for (const nlohmann::json& note : *notes) {
        findings += (findings.empty() ? "note: " : "; note: ") +
                    (note.is_string() ? note.get<std::string>() : note.dump());
      }
    }
    const auto judged = verdict.find("judged");
    const bool is_judged =
        judged == verdict.end() || *judged == true || !field(verdict, "sentence").is_null();
    (is_good ? good : table)
        .rows.push_back({subject_of(verdict),
                         is_good     ? "good"
                         : is_judged ? "BAD"
                                     : "not judged",
                         findings.empty() ? "-" : std::move(findings)});
    if (const nlohmann::json& sentence = field(verdict, "sentence"); sentence.is_string()) {
      section.paragraphs.push_back("For the vendor: " + sentence.get<std::string>());
    }
  }
  table.rows.insert(table.rows.end(), good.rows.begin(), good.rows.end());
  if (table.rows.size() > kMostVerdicts) {
    table.caption += fmt::format(" (the first {} of {})", kMostVerdicts, table.rows.size());
    table.rows.resize(kMostVerdicts);
  }
  section.tables.push_back(std::move(table));
}

}  // namespace

bool looks_like_acceptance(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  const std::string_view head = text.substr(0, kHead);
  return head.find("\"schema\"") != std::string_view::npos &&
         head.find("\"accepted\"") != std::string_view::npos;
}

namespace {

// Returns the verdict on the machine in capitals, unless it was accepted. Throws DataError if the
// file says two things.
const char* machine_verdict(const nlohmann::json& document) {
  const bool accepted = flag_field(document, "accepted");
  const auto is_bad = [](const nlohmann::json& each) { return !flag_field(each, "good"); };
  const nlohmann::json& nodes = array_field(document, "nodes");
  const nlohmann::json& links = array_field(document, "links");
  if (nodes.empty() && links.empty()) {
    throw DataError("it names no node and no link, so that nothing was measured");
  }
  const auto verdict = document.find("verdict");  // not in the oldest files
  if (accepted && ((verdict != document.end() && *verdict != "accepted") ||
                   std::any_of(nodes.begin(), nodes.end(), is_bad) ||
                   std::any_of(links.begin(), links.end(), is_bad))) {
    throw DataError("'accepted' is true, but its verdicts are not all good: it was changed");
  }
  return accepted                                                ? "accepted"
         : verdict != document.end() && *verdict == "not judged" ? "NOT JUDGED"
                                                                 : "REJECTED";
}

}  // namespace

DocSection acceptance_section(std::string_view text, const std::string& name) {
  constexpr std::int64_t kSchema = 1;
  const nlohmann::json document = parse_json(text);
  if (count_field(document, "schema") != kSchema) {
    throw DataError(
        fmt::format("its schema is not version {}: use the program that wrote it", kSchema));
  }
  DocSection section;
  section.heading = "Acceptance: " + name;
  const nlohmann::json& seconds = field(document, "seconds");
  section.paragraphs.push_back(
      fmt::format("The machine is {}. {} and {} were measured in {}.", machine_verdict(document),
                  counted(std::ssize(array_field(document, "nodes")), "node"),
                  counted(std::ssize(array_field(document, "links")), "link"),
                  seconds.is_number() ? format_seconds(seconds.get<double>()) : "an unknown time"));
  if (const auto program = document.find("program");
      program != document.end() && program->is_object()) {
    section.paragraphs.push_back(fmt::format("Measured with trireme {} ({}).",
                                             text_field(*program, "version"),
                                             text_field(*program, "commit")));
  }
  add_profile(section, document);
  if (const auto doubt = document.find("doubt"); doubt != document.end() && doubt->is_string()) {
    section.remarks.push_back(doubt->get<std::string>());
  }
  if (const auto drain = document.find("drain"); drain != document.end()) {
    if (const nlohmann::json& cause = field(*drain, "shared_cause"); cause.is_string()) {
      section.remarks.push_back(cause.get<std::string>());
    }
  }
  add_verdicts(section, "Nodes, the bad ones first", array_field(document, "nodes"));
  add_verdicts(section, "Links, the bad ones first", array_field(document, "links"));
  add_figures(section, "Measured on the nodes", array_field(document, "nodes"));
  add_figures(section, "Measured on the links", array_field(document, "links"));
  for (const nlohmann::json& command : array_field(document, "drain_commands")) {
    section.text_heading = "Commands that drain the bad nodes";
    section.text += (command.is_string() ? command.get<std::string>() : command.dump()) + "\n";
  }
  return section;
}

}  // namespace trireme
