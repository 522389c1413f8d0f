#include "src/study/acceptance.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/statistics.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/median.h"
#include "src/base/units.h"
#include "src/study/comparison.h"

namespace trireme {
namespace {

constexpr std::size_t kFewestToCompare = 3;
constexpr std::size_t kPartners = 2;

// Returns the value as a speed, of which more is better.
double speed(double value, Better better) { return better == Better::lower ? 1 / value : value; }

std::set<std::string> names_of(const std::vector<AcceptSubject>& subjects) {
  std::set<std::string> names;
  for (const AcceptSubject& subject : subjects) {
    for (const auto& [name, values] : subject.measured) {
      names.insert(name);
    }
  }
  return names;
}

// Judges one measurement of all subjects, and adds findings to their verdicts.
void judge_measure(const std::string& name, const std::vector<AcceptSubject>& subjects,
                   const AcceptProfile::Demands& demands, std::vector<AcceptVerdict>& verdicts) {
  std::vector<std::size_t> who;
  std::vector<double> speeds;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto found = subjects[i].measured.find(name);
    if (found == subjects[i].measured.end()) {
      verdicts[i].complaints.push_back(fmt::format("{} could not be measured", name));
    } else {
      who.push_back(i);
      speeds.push_back(speed(median(found->second.values), found->second.better));
    }
  }
  const std::vector<double> scores = robust_scores(speeds);
  const double typical = median(speeds);
  const auto limit = demands.limits.find(name);
  for (std::size_t i = 0; i < who.size(); ++i) {
    const AcceptValues& values = subjects[who[i]].measured.at(name);
    const bool slow = who.size() >= kFewestToCompare &&
                      speeds[i] < demands.at_least / 100 * typical && scores[i] < -demands.score;
    const bool beyond =
        limit != demands.limits.end() && speeds[i] < speed(limit->second, values.better);
    if (slow || beyond) {
      verdicts[who[i]].findings.push_back({name, speed(speeds[i], values.better),
                                           speed(typical, values.better), values.unit,
                                           100 * speeds[i] / typical, -scores[i], beyond});
    }
  }
}

std::string number_text(double value, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

std::string subject_text(const std::vector<std::string>& nodes) {
  return nodes.size() == 1 ? fmt::format("Node {}", nodes[0])
                           : fmt::format("The link between {} and {}", nodes[0], nodes[1]);
}

}  // namespace

void add_health(std::string_view text, AcceptSubject& subject) {
  const nlohmann::json health = parse_json(text);
  for (const nlohmann::json& complaint : array_field(health, "complaints")) {
    if (!complaint.is_string()) {
      throw DataError("a complaint is not a text");
    }
    subject.complaints.insert(complaint.get<std::string>());
  }
  for (const auto& [name, rate] : object_field(health, "rates").items()) {
    const nlohmann::json& value = field(rate, "median");
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      throw DataError(fmt::format("the rate {} is not a number above 0", name));
    }
    AcceptValues& values = subject.measured[name];
    values.unit = text_field(rate, "unit");
    values.values.push_back(value.get<double>());
  }
}

void add_result(const MeasuredResult& result, AcceptSubject& subject) {
  for (const ResultRow& row : result.rows) {
    for (const SampleSet& samples : row.samples) {
      const Better better = better_of(samples.name);
      if (samples.reference || samples.values.empty() || better == Better::unknown) {
        continue;
      }
      const double value = median(samples.values);
      if (value > 0) {
        AcceptValues& values = subject.measured[row_title(row, result) + " " + samples.name];
        values.better = better;
        values.values.push_back(value);
      }
    }
  }
}

std::vector<AcceptVerdict> judge(const std::vector<AcceptSubject>& subjects,
                                 const AcceptProfile::Demands& demands) {
  std::vector<AcceptVerdict> verdicts;
  for (const AcceptSubject& subject : subjects) {
    verdicts.push_back({subject.nodes, {}, {subject.complaints.begin(), subject.complaints.end()}});
  }
  for (const std::string& name : names_of(subjects)) {
    judge_measure(name, subjects, demands, verdicts);
  }
  for (AcceptVerdict& verdict : verdicts) {
    std::sort(verdict.findings.begin(), verdict.findings.end(),
              [](const auto& a, const auto& b) { return a.percent < b.percent; });
  }
  return verdicts;
}

std::vector<std::pair<std::string, std::string>> partner_tests(
    const std::vector<AcceptVerdict>& links, const std::set<std::string>& bad_nodes) {
  std::set<std::string> suspects;
  std::set<std::string> partners;
  for (const AcceptVerdict& link : links) {
    for (const std::string& node : link.nodes) {
      (link.good() ? partners : suspects).insert(node);
    }
  }
  // A healthy node that shares a link with the culprit is a suspect, too. The nodes with the fewest
  // bad links are the best partners that there are.
  std::map<std::string, std::size_t> bad_links;
  std::set<std::pair<std::string, std::string>> bad_pairs;
  for (const AcceptVerdict& link : links) {
    for (const std::string& node : link.nodes) {
      bad_links[node] += link.good() ? 0 : 1;
    }
    if (!link.good()) {
      bad_pairs.insert(std::minmax(link.nodes[0], link.nodes[1]));
    }
  }
  std::vector<std::string> known_good;
  for (const std::string& node : partners) {
    if (!bad_nodes.contains(node)) {
      known_good.push_back(node);
    }
  }
  std::map<std::string, int> uses;  // as a partner, so that tests can run at the same time
  std::vector<std::pair<std::string, std::string>> tests;
  for (const std::string& suspect : suspects) {
    std::vector<std::string> fitting;
    for (const std::string& partner : known_good) {
      // The other end of a bad link cannot clear the suspect, unless it has fewer bad links.
      const bool fits = bad_links[partner] < bad_links[suspect] ||
                        (bad_links[partner] == bad_links[suspect] &&
                         !bad_pairs.contains(std::minmax(suspect, partner)));
      if (partner != suspect && fits) {
        fitting.push_back(partner);
      }
    }
    std::stable_sort(fitting.begin(), fitting.end(), [&](const auto& x, const auto& y) {
      return std::pair(bad_links[x], uses[x]) < std::pair(bad_links[y], uses[y]);
    });
    for (std::size_t i = 0; i < std::min(kPartners, fitting.size()); ++i) {
      tests.emplace_back(suspect, fitting[i]);
      ++uses[fitting[i]];
    }
  }
  return tests;
}

std::set<std::string> guilty_ends(const std::vector<std::pair<std::string, std::string>>& pairs,
                                  const std::vector<AcceptVerdict>& tested) {
  std::map<std::string, int> bad;
  std::map<std::string, int> all;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ++all[pairs[i].first];
    bad[pairs[i].first] += tested[i].good() ? 0 : 1;
  }
  std::set<std::string> guilty;
  for (const auto& [node, count] : all) {
    if (bad[node] == count) {
      guilty.insert(node);
    }
  }
  return guilty;
}

std::string shared_cause(std::size_t bad, std::size_t all, double most_percent) {
  if (static_cast<double>(bad) <= most_percent / 100 * static_cast<double>(all)) {
    return "";
  }
  return fmt::format(
      "{} of {} would be drained, more than the {:g} % of drain_at_most in the profile. Look for a "
      "cause that they share before you drain any: node.start, the limits or `seconds` in the "
      "profile, or other programs on the nodes. --drain-all drains them all the same",
      bad, counted(static_cast<std::int64_t>(all), "node"), most_percent);
}

std::string sentence(const AcceptVerdict& verdict, int rounds) {
  std::string text;
  for (const AcceptFinding& finding : verdict.findings) {
    text += fmt::format(
        "{}{} reaches {:.0f} % of the typical speed in {}: {}, where the median of all is {} "
        "(median of {} round{}{}).",
        text.empty() ? "" : " ", subject_text(verdict.nodes), finding.percent, finding.name,
        number_text(finding.value, finding.unit), number_text(finding.typical, finding.unit),
        rounds, rounds == 1 ? "" : "s",
        finding.limit ? ", beyond the agreed limit"
                      : fmt::format(", {:.1f} robust standard deviations slower", finding.score));
  }
  for (const std::string& complaint : verdict.complaints) {
    text +=
        fmt::format("{}{}: {}.", text.empty() ? "" : " ", subject_text(verdict.nodes), complaint);
  }
  return text;
}

std::string reason(const AcceptVerdict& verdict) {
  if (!verdict.findings.empty()) {
    const AcceptFinding& worst = verdict.findings.front();
    return fmt::format("trireme accept: {} at {:.0f} % of the median", worst.name, worst.percent);
  }
  return fmt::format("trireme accept: {}",
                     verdict.complaints.empty() ? "bad link" : verdict.complaints.front());
}

}  // namespace trireme
