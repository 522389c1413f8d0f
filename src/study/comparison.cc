#include "src/study/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "src/base/median.h"

namespace trireme {
namespace {

constexpr std::size_t kMostExplained = 20;  // rows without a partner that are compared with others
const double kNan = std::numeric_limits<double>::quiet_NaN();

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

// Turns a shift of logarithms into a change as a fraction. Infinite bounds stay infinite.
Shift change_of(const Shift& ratio) {
  return {std::expm1(ratio.estimate), std::isinf(ratio.low) ? ratio.low : std::expm1(ratio.low),
          std::expm1(ratio.high)};
}

std::vector<double> logarithms(std::vector<double> values) {
  for (double& value : values) {
    value = std::log(value);
  }
  return values;
}

RowComparison compare_samples(const SampleSet& a, const SampleSet& b,
                              const ComparisonRules& rules) {
  RowComparison compared;
  compared.samples = a.name;
  compared.better = better_of(a.name);
  compared.reference = a.reference;
  compared.change = {kNan, kNan, kNan};
  compared.median_a = a.values.empty() ? kNan : median(a.values);
  compared.median_b = b.values.empty() ? kNan : median(b.values);
  if (a.values.empty() || b.values.empty()) {
    compared.why = "no finite samples";
    return compared;
  }
  const std::vector<double> x = independent_values(a.values);
  const std::vector<double> y = independent_values(b.values);
  compared.count_a = x.size();
  compared.count_b = y.size();
  compared.test = mann_whitney(x, y);
  const double pairs = static_cast<double>(x.size()) * static_cast<double>(y.size());
  const double a_larger = compared.test.u / pairs;
  compared.worse_probability = compared.better == Better::higher ? a_larger : 1 - a_larger;
  if (!all_positive(x) || !all_positive(y)) {
    compared.why = "samples are zero or negative";
    return compared;
  }
  compared.change = change_of(shift_between(logarithms(x), logarithms(y), rules.alpha));
  if (compared.better == Better::unknown) {
    compared.why = "the unit does not tell which direction is better";
  } else if (compared.reference) {
    compared.why = "shown to explain other rows";
  }
  return compared;
}

// Returns the change as a slowdown: how much longer B takes, or A would take at B's rate.
double slowdown_of(double change, Better better) {
  return better == Better::lower ? change : 1 / (1 + change) - 1;
}

void judge(RowComparison& compared, const ComparisonRules& rules) {
  const double slowdown = slowdown_of(compared.change.estimate, compared.better);
  const double speedup = 1 / (1 + slowdown) - 1;
  const bool significant = compared.p_adjusted < rules.alpha;
  const bool within =
      compared.change.low > -rules.threshold && compared.change.high < rules.threshold;
  if (significant && slowdown >= rules.threshold) {
    compared.verdict = ChangeVerdict::regression;
  } else if (significant && speedup >= rules.threshold) {
    compared.verdict = ChangeVerdict::improvement;
  } else if (significant || within) {
    compared.verdict = ChangeVerdict::unchanged;
  } else {
    compared.verdict = ChangeVerdict::undecided;
    compared.why = std::isfinite(compared.change.low)
                       ? "the samples scatter too much for this threshold: take more"
                       : "too few samples: take more";
  }
}

void judge_all(Comparison& comparison, const ComparisonRules& rules) {
  std::vector<double> p;
  for (const RowComparison& row : comparison.rows) {
    if (row.why.empty()) {
      p.push_back(row.test.p);
    }
  }
  const std::vector<double> adjusted = holm_adjusted(p);
  std::size_t at = 0;
  for (RowComparison& row : comparison.rows) {
    if (row.why.empty()) {
      row.p_adjusted = adjusted[at++];
      judge(row, rules);
    }
  }
}

// The rows of a measurement by their keys; the first one counts if several have the same.
using RowsByKey = std::unordered_map<std::string, const ResultRow*>;

RowsByKey rows_by_key(const MeasuredResult& of) {
  RowsByKey rows;
  for (const ResultRow& row : of.rows) {
    rows.emplace(row.key(), &row);
  }
  return rows;
}

const ResultRow* find_row(const RowsByKey& in, const ResultRow& row) {
  const auto found = in.find(row.key());
  return found == in.end() ? nullptr : found->second;
}

const SampleSet* find_samples(const ResultRow& row, const std::string& name) {
  const auto found = std::find_if(row.samples.begin(), row.samples.end(),
                                  [&](const SampleSet& each) { return each.name == name; });
  return found == row.samples.end() ? nullptr : &*found;
}

void compare_rows(const ResultRow& a, const ResultRow& b, const ComparisonRules& rules,
                  Comparison& comparison) {
  for (const SampleSet& samples : a.samples) {
    if (const SampleSet* other = find_samples(b, samples.name); other != nullptr) {
      comparison.rows.push_back(compare_samples(samples, *other, rules));
      comparison.rows.back().row = &a;
    }
  }
}

// Returns why a row has no partner if only parameters differ that all rows of a measurement share,
// and which its title therefore does not show: " array_bytes=8 (the other: 16)", or "".
std::string shared_differences(const ResultRow& row, const std::string& title,
                               const MeasuredResult& other) {
  for (const ResultRow& candidate : other.rows) {
    std::string text;
    bool resembles = candidate.name == row.name && candidate.params.size() == row.params.size();
    for (const auto& [name, value] : row.params) {
      const auto there = candidate.params.find(name);
      const bool same = there != candidate.params.end() && there->second == value;
      const bool shown = title.find(fmt::format(" {}={}", name, value)) != std::string::npos;
      resembles = resembles && there != candidate.params.end() && (same || !shown);
      if (resembles && !same) {
        text += fmt::format(" {}={} (the other: {})", name, value, there->second);
      }
    }
    if (resembles) {
      return text;
    }
  }
  return "";
}

// Returns what `of` has and the other one lacks: titles of whole rows, or with the name of samples,
// which differs if the unit does.
std::vector<std::string> only_in(const MeasuredResult& of, const MeasuredResult& other,
                                 const RowsByKey& others) {
  std::vector<std::string> titles;
  const RowTitles title_of(of);
  for (const ResultRow& row : of.rows) {
    const ResultRow* same = find_row(others, row);
    if (same == nullptr) {
      const std::string title = title_of(row);
      titles.push_back(
          title + (titles.size() < kMostExplained ? shared_differences(row, title, other) : ""));
      continue;
    }
    for (const SampleSet& samples : row.samples) {
      if (find_samples(*same, samples.name) == nullptr) {
        titles.push_back(fmt::format("{}: {}", title_of(row), samples.name));
      }
    }
  }
  return titles;
}

std::string value_in(const std::map<std::string, std::string>& all, const std::string& key) {
  const auto found = all.find(key);
  return found == all.end() ? "not set" : found->second;
}

}  // namespace

std::string_view name_of(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::regression:
      return "regression";
    case ChangeVerdict::improvement:
      return "improvement";
    case ChangeVerdict::unchanged:
      return "unchanged";
    case ChangeVerdict::undecided:
      return "undecided";
    case ChangeVerdict::not_judged:
      return "not_judged";
  }
  return "";
}

std::size_t Comparison::count_of(ChangeVerdict verdict) const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const RowComparison& row) { return row.verdict == verdict; }));
}

Comparison compare_results(const MeasuredResult& a, const MeasuredResult& b,
                           const ComparisonRules& rules) {
  Comparison comparison;
  const RowsByKey rows_of_a = rows_by_key(a);
  const RowsByKey rows_of_b = rows_by_key(b);
  for (const ResultRow& row : a.rows) {
    if (const ResultRow* other = find_row(rows_of_b, row); other != nullptr) {
      compare_rows(row, *other, rules, comparison);
    }
  }
  comparison.only_a = only_in(a, b, rows_of_b);
  comparison.only_b = only_in(b, a, rows_of_a);
  judge_all(comparison, rules);
  return comparison;
}

std::vector<std::string> differences(const MeasuredResult& a, const MeasuredResult& b) {
  if (a.command != b.command) {
    return {fmt::format("one measures {}, the other {}", a.command, b.command)};
  }
  std::set<std::string> keys;
  for (const MeasuredResult* each : {&a, &b}) {
    for (const auto& [key, value] : each->conditions) {
      keys.insert(key);
    }
  }
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const std::string in_a = value_in(a.conditions, key);
    const std::string in_b = value_in(b.conditions, key);
    if (in_a != in_b) {
      found.push_back(fmt::format("{}: {} and {}", key, in_a, in_b));
    }
  }
  if (a.gpus && b.gpus && *a.gpus != *b.gpus) {
    const auto text = [](const std::string& names) { return names.empty() ? "none" : names; };
    found.push_back(fmt::format("host.gpus: {} and {}", text(*a.gpus), text(*b.gpus)));
  }
  return found;
}

RowTitles::RowTitles(const MeasuredResult& of) {
  std::map<std::string, std::int64_t> rows;
  for (const ResultRow& row : of.rows) {
    ++rows[row.name];
    for (const auto& [param, value] : row.params) {
      ++shared_[row.name][{param, value}];
    }
  }
  for (auto& [name, params] : shared_) {
    std::erase_if(params, [count = rows[name]](const auto& each) { return each.second < count; });
  }
}

std::string RowTitles::operator()(const ResultRow& row) const {
  std::string title = row.name;
  const auto shared = shared_.find(row.name);
  for (const auto& each : row.params) {
    if (shared == shared_.end() || !shared->second.contains(each)) {
      title += fmt::format(" {}={}", each.first, each.second);
    }
  }
  return title;
}

std::string RowTitles::shared_by(const std::string& name) const {
  std::string text;
  if (const auto shared = shared_.find(name); shared != shared_.end()) {
    for (const auto& [param, count] : shared->second) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", param.first, param.second);
    }
  }
  return text;
}

std::string row_title(const ResultRow& row, const MeasuredResult& of) { return RowTitles(of)(row); }

}  // namespace trireme
