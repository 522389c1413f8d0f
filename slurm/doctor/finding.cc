#include "slurm/doctor/finding.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::size_t kMostShown = 8;

struct Group {
  Finding finding;
  std::vector<std::string> places;
};

std::string places_text(const std::vector<std::string>& places) {
  const std::size_t shown = std::min(places.size(), kMostShown);
  std::string text = fmt::format(
      "{}", fmt::join(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return places.size() > shown ? fmt::format("{} and {} more", text, places.size() - shown) : text;
}

}  // namespace

Finding warning_of(std::string what, std::string where, std::string remedy) {
  return {Severity::warning, ExitCode::below_threshold, std::move(what), std::move(where),
          std::move(remedy)};
}

Finding error_of(const Error& error, std::string where) {
  return {Severity::error, error.exit_code(), error.what(), std::move(where), ""};
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

nlohmann::json to_json(const std::vector<Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"severity", finding.severity == Severity::error ? "error" : "warning"},
                   {"code", static_cast<int>(finding.code)},
                   {"what", finding.what},
                   {"where", finding.where},
                   {"remedy", finding.remedy}});
  }
  return all;
}

std::vector<Finding> findings_from_json(const nlohmann::json& json) {
  std::vector<Finding> all;
  if (!json.is_array()) {
    throw DataError("findings: expected an array");
  }
  for (const nlohmann::json& each : json) {
    all.push_back({text_field(each, "severity") == "error" ? Severity::error : Severity::warning,
                   static_cast<ExitCode>(count_field(each, "code", 0, 255)),
                   text_field(each, "what"), text_field(each, "where"),
                   text_field(each, "remedy")});
  }
  return all;
}

std::vector<Finding> merged(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.finding.severity == finding.severity && group.finding.what == finding.what &&
             group.finding.remedy == finding.remedy;
    });
    Group& group = same == groups.end() ? groups.emplace_back(Group{finding, {}}) : *same;
    if (std::find(group.places.begin(), group.places.end(), finding.where) == group.places.end()) {
      group.places.push_back(finding.where);
    }
  }
  std::vector<Finding> all;
  for (const Severity severity : {Severity::error, Severity::warning}) {
    for (const Group& group : groups) {
      if (group.finding.severity == severity) {
        all.push_back(group.finding);
        all.back().where = places_text(group.places);
      }
    }
  }
  return all;
}

ExitCode exit_code_of(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::error) {
      return finding.code;
    }
  }
  return findings.empty() ? ExitCode::ok : ExitCode::below_threshold;
}

}  // namespace trireme
