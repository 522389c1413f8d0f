#include "src/study/acceptance.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "benchmarks/busy_watch.h"
#include "benchmarks/statistics.h"
#include "src/base/median.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::size_t kFewestToCompare = 3;
constexpr std::size_t kPartners = 2;

std::set<std::string> names_of(const std::vector<AcceptSubject>& subjects) {
  std::set<std::string> names;
  for (const AcceptSubject& subject : subjects) {
    for (const auto& [name, values] : subject.measured) {
      names.insert(name);
    }
  }
  return names;
}

// Judges one figure of all subjects, and adds it to their verdicts.
void judge_figure(const std::string& name, const std::vector<AcceptSubject>& subjects,
                  const AcceptProfile::Demands& demands, std::vector<AcceptVerdict>& verdicts) {
  std::vector<std::size_t> who;
  std::vector<double> medians, speeds;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto found = subjects[i].measured.find(name);
    if (found == subjects[i].measured.end()) {
      missing.push_back(i);
    } else {
      who.push_back(i);
      medians.push_back(median(found->second.values));
      speeds.push_back(speed_of(medians.back(), found->second));
    }
  }
  const std::vector<double> scores = robust_scores(speeds);
  const double typical = median(speeds);
  const AcceptValues& first = subjects[who.front()].measured.at(name);
  for (const std::size_t i : missing) {
    if (first.compared) {  // the times of the same row are missing, too
      verdicts[i].complaints.push_back(fmt::format("{} could not be measured", name));
    }
  }
  const auto limit = limit_of(name, first, demands);
  for (std::size_t i = 0; i < who.size(); ++i) {
    const AcceptValues& values = subjects[who[i]].measured.at(name);
    AcceptVerdict& verdict = verdicts[who[i]];
    const bool compared = values.compared && who.size() >= kFewestToCompare;
    AcceptFigure figure{
        name, medians[i], median(medians), values.unit, 100 * speeds[i] / typical, -scores[i]};
    figure.details = values.details;
    figure.more_is_better = values.better != Better::lower;
    figure.slow =
        compared && speeds[i] < demands.at_least / 100 * typical && scores[i] < -demands.score;
    if (limit) {
      figure.agreed = limit;
      figure.limit_percent = 100 * speeds[i] / speed_of(limit->value, values);
      figure.limit = speeds[i] < speed_of(limit->value, values);
    }
    verdict.judged = verdict.judged || compared || limit.has_value();
    if (figure.slow || figure.limit) {
      verdict.findings.push_back(figure);
    }
    verdict.figures.push_back(std::move(figure));
  }
}

// Says for which measurements the machine was too busy.
std::vector<std::string> busy_notes(const AcceptSubject& subject) {
  std::vector<std::string> notes;
  for (const auto& [what, part] : subject.waited) {
    if (part >= kBusyPart) {
      notes.push_back(fmt::format(
          "{} waited for a core {:.0f} % of its time: other programs kept the cores busy", what,
          100 * part));
    }
  }
  return notes;
}

// Of a bad figure: percent of the speed that it should have.
double shortfall(const AcceptFigure& figure) {
  return std::min(figure.slow ? figure.percent : 100, figure.limit ? figure.limit_percent : 100);
}

std::string full_name(const AcceptFigure& figure) {
  return figure.details.empty() ? figure.name : fmt::format("{} ({})", figure.name, figure.details);
}

std::string subject_text(const std::vector<std::string>& nodes) {
  return nodes.size() == 1 ? fmt::format("Node {}", nodes[0])
                           : fmt::format("The link between {} and {}", nodes[0], nodes[1]);
}

}  // namespace

std::string figure_text(double value, const std::string& unit) {
  if (unit == "FLOP/s" || unit == "B/s") {
    return format_rate(value, unit);
  }
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

std::vector<AcceptVerdict> judge(const std::vector<AcceptSubject>& subjects,
                                 const AcceptProfile::Demands& demands) {
  std::vector<AcceptVerdict> verdicts;
  for (const AcceptSubject& subject : subjects) {
    verdicts.push_back({subject.nodes, {}, {subject.complaints.begin(), subject.complaints.end()}});
    verdicts.back().notes = busy_notes(subject);
    verdicts.back().judged = false;
  }
  for (const std::string& name : names_of(subjects)) {
    judge_figure(name, subjects, demands, verdicts);
  }
  for (AcceptVerdict& verdict : verdicts) {
    std::sort(verdict.findings.begin(), verdict.findings.end(),
              [](const auto& a, const auto& b) { return shortfall(a) < shortfall(b); });
  }
  return verdicts;
}

std::vector<std::pair<std::string, std::string>> partner_tests(
    const std::vector<AcceptVerdict>& links, const std::set<std::string>& bad_nodes) {
  std::set<std::string> suspects;
  std::set<std::string> partners;
  for (const AcceptVerdict& link : links) {
    for (const std::string& node : link.nodes) {
      (link.bad() ? suspects : partners).insert(node);
    }
  }
  // A healthy node that shares a link with the culprit is a suspect, too. The nodes with the fewest
  // bad links are the best partners that there are.
  std::map<std::string, std::size_t> bad_links;
  std::set<std::pair<std::string, std::string>> bad_pairs;
  for (const AcceptVerdict& link : links) {
    for (const std::string& node : link.nodes) {
      bad_links[node] += link.bad() ? 1 : 0;
    }
    if (link.bad()) {
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
    bad[pairs[i].first] += tested[i].bad() ? 1 : 0;
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

std::string short_text(const AcceptVerdict& verdict) {
  if (!verdict.bad()) {
    return verdict.judged ? "good" : verdict.figures.empty() ? "not measured" : "not judged";
  }
  if (verdict.findings.empty()) {
    return "BAD: " + verdict.complaints.front();
  }
  const AcceptFigure& worst = verdict.findings.front();
  return worst.limit ? fmt::format("BAD: {} is {}, limit {}", worst.name,
                                   figure_text(worst.value, worst.unit),
                                   figure_text(worst.agreed->value, worst.unit))
                     : fmt::format("BAD: {} at {:.0f} %", worst.name, worst.percent);
}

std::string sentence(const AcceptVerdict& verdict, int rounds) {
  std::string text;
  const std::string subject = subject_text(verdict.nodes);
  for (const AcceptFigure& figure : verdict.findings) {
    const std::string value = figure_text(figure.value, figure.unit);
    const std::string typical = figure_text(figure.typical, figure.unit);
    text += text.empty() ? "" : " ";
    text +=
        figure.limit
            ? fmt::format(
                  "{} misses the agreed limit {}={:g} in {}: {} instead of at {} {} (median of {}; "
                  "the median of all is {}).",
                  subject, figure.agreed->name, figure.agreed->value, full_name(figure), value,
                  figure.more_is_better ? "least" : "most",
                  figure_text(figure.agreed->value, figure.unit), counted(rounds, "round"), typical)
            : fmt::format(
                  "{} reaches {:.0f} % of the typical speed in {}: {}, where the median of "
                  "all is {} (median of {}, {:.1f} robust standard deviations slower).",
                  subject, figure.percent, full_name(figure), value, typical,
                  counted(rounds, "round"), figure.score);
  }
  for (const std::string& complaint : verdict.complaints) {
    const bool ends = complaint.ends_with('.') || complaint.ends_with('?');
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : " ", subject, complaint, ends ? "" : ".");
  }
  return text;
}

std::string reason(const AcceptVerdict& verdict) {
  if (!verdict.findings.empty()) {
    const AcceptFigure& worst = verdict.findings.front();
    return worst.limit ? fmt::format("trireme accept: {} is {}, limit {}", full_name(worst),
                                     figure_text(worst.value, worst.unit),
                                     figure_text(worst.agreed->value, worst.unit))
                       : fmt::format("trireme accept: {} at {:.0f} % of the median", worst.name,
                                     worst.percent);
  }
  return fmt::format("trireme accept: {}",
                     verdict.complaints.empty() ? "bad link" : verdict.complaints.front());
}

}  // namespace trireme
