#include "src/evaluation/eval_gates.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/config_binder.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostBaselineBytes = std::int64_t{64} << 20;
constexpr std::string_view kGroups = ".groups.";

constexpr std::pair<GateRule, std::string_view> kRules[] = {
    {GateRule::at_least, "at_least"},
    {GateRule::at_most, "at_most"},
    {GateRule::drop_at_most, "drop_at_most"},
    {GateRule::rise_at_most, "rise_at_most"},
    {GateRule::groups_differ_at_most, "groups_differ_at_most"}};

bool needs_baseline(GateRule rule) {
  return rule == GateRule::drop_at_most || rule == GateRule::rise_at_most;
}

// Returns the names of the gates in the order of the file.
std::vector<std::string> gate_names(const std::filesystem::path& file) {
  constexpr std::string_view kPrefix = "gates.";
  std::vector<std::string> names;
  for (const ConfigEntry& entry : parse_config(read_file(file, kMaxConfigBytes), file.string())) {
    if (entry.key == "gates" && (entry.value.kind == ConfigValue::Kind::mapping ||
                                 entry.value.kind == ConfigValue::Kind::null)) {
      throw ConfigError(fmt::format(
          "{}:{}: `gates` is empty, so that every result would pass: name at least one gate, such "
          "as `quality: {{figure: loss, at_most: 3}}`",
          file.string(), entry.line));
    }
    if (entry.key.starts_with(kPrefix)) {
      const std::string name =
          entry.key.substr(kPrefix.size(), entry.key.find('.', kPrefix.size()) - kPrefix.size());
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

// Reads "0.01", or "2%" where a fraction of the baseline is allowed.
void read_bound(ConfigBinder& b, const std::string& key, const std::string& text, EvalGate& gate) {
  std::string_view number = text;
  if (needs_baseline(gate.rule) && number.ends_with('%')) {
    gate.relative = true;
    number.remove_suffix(1);
  }
  const auto [end, code] =
      std::from_chars(number.data(), number.data() + number.size(), gate.bound);
  const bool is_change = gate.rule != GateRule::at_least && gate.rule != GateRule::at_most;
  if (code != std::errc() || end != number.data() + number.size() || !std::isfinite(gate.bound) ||
      (is_change && gate.bound < 0)) {
    b.refuse(key, fmt::format("{} is '{}', but it takes a number{}{}", key, printable(text),
                              is_change ? " that is not negative" : "",
                              needs_baseline(gate.rule) ? ", or a percentage such as 2%" : ""));
  }
  gate.bound = gate.relative ? gate.bound / 100 : gate.bound;
}

void bind_gate(ConfigBinder& b, const std::string& name, std::vector<EvalGate>& gates) {
  const std::string section = "gates." + name;
  EvalGate gate;
  gate.name = name;
  b.text(section + ".figure", gate.figure, "the figure of the result, such as tasks.NAME.acc")
      .required();
  b.texts(section + ".groups", gate.groups, "the groups to compare; empty: all");
  b.integer(section + ".least_items", gate.least_items, "examples of each compared group")
      .at_least(1);
  std::size_t rules = 0;
  for (const auto& [rule, word] : kRules) {
    const std::string key = fmt::format("{}.{}", section, word);
    std::string text;
    b.text(key, text, "the bound");
    if (b.origin_of(key) != "default") {
      gate.rule = rule;
      gate.relative = false;
      gate.origin = b.origin_of(key);
      read_bound(b, key, text, gate);
      gates.push_back(gate);
      ++rules;
    }
  }
  if (rules == 0) {
    b.refuse(section + ".figure",
             fmt::format("gate {} has no bound: add at_least, at_most, drop_at_most, rise_at_most "
                         "or groups_differ_at_most",
                         printable(name)));
  }
  for (const char* const field : {".groups", ".least_items"}) {
    const bool compares = rules > 0 && gates.back().rule == GateRule::groups_differ_at_most;
    if (!compares && b.origin_of(section + field) != "default") {
      b.refuse(section + field, "it is for groups_differ_at_most, which this gate lacks");
    }
  }
}

void flatten(const nlohmann::json& value, const std::string& name,
             std::map<std::string, double>& figures) {
  if (value.is_object()) {
    for (const auto& [key, each] : value.items()) {
      flatten(each, name.empty() ? key : name + "." + key, figures);
    }
  } else if (value.is_number() || value.is_null()) {
    const double number =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    if (!figures.emplace(name, number).second) {  // a dot within a name
      throw DataError(fmt::format("two figures are called '{}': rename a group", printable(name)));
    }
  }
}

std::string nearest_figure(const std::string& figure, const std::map<std::string, double>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    names.push_back(name);
  }
  const std::string nearest = nearest_word(figure, names);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", printable(nearest));
}

[[noreturn]] void refuse_figure(const EvalGate& gate, const std::string& figure,
                                const std::map<std::string, double>& result) {
  throw ConfigError(fmt::format("{}: gate {}: the result has no figure '{}'{}", gate.origin,
                                printable(gate.name), printable(figure),
                                nearest_figure(figure, result)));
}

double figure_of(const EvalGate& gate, const std::map<std::string, double>& result) {
  const auto found = result.find(gate.figure);
  if (found == result.end()) {
    refuse_figure(gate, gate.figure, result);
  }
  return found->second;
}

GateOutcome judge_threshold(const EvalGate& gate, const std::map<std::string, double>& result) {
  const double found = figure_of(gate, result);
  const bool least = gate.rule == GateRule::at_least;
  return {gate.name, gate.figure, fmt::format("{} {}", least ? ">=" : "<=", gate.bound),
          found,     "",          least ? found >= gate.bound : found <= gate.bound};
}

GateOutcome judge_change(const EvalGate& gate, const std::map<std::string, double>& result,
                         const std::map<std::string, double>& baseline) {
  const double found = figure_of(gate, result);
  const auto before = baseline.find(gate.figure);
  if (before == baseline.end() || !std::isfinite(before->second)) {
    throw DataError(fmt::format(
        "{}: gate {}: the baseline has no figure '{}', or it is not finite: make the baseline with "
        "the same tasks and groups",
        gate.origin, printable(gate.name), printable(gate.figure)));
  }
  const bool drop = gate.rule == GateRule::drop_at_most;
  const double change = drop ? before->second - found : found - before->second;
  const double most = gate.relative ? gate.bound * std::abs(before->second) : gate.bound;
  const std::string bound =
      gate.relative ? fmt::format("{:g}%", gate.bound * 100) : fmt::format("{}", gate.bound);
  return {gate.name,
          gate.figure,
          fmt::format("{} <= {} from {:.6g}", drop ? "drop" : "rise", bound, before->second),
          found,
          "",
          change <= most};
}

// Returns the value of the gate's figure in each group that it compares.
std::map<std::string, double> compared_groups(const EvalGate& gate,
                                              const std::map<std::string, double>& result) {
  (void)figure_of(gate, result);
  const std::size_t dot = gate.figure.rfind('.');
  const std::string task = dot == std::string::npos ? "" : gate.figure.substr(0, dot);
  const std::string prefix = task + std::string(kGroups);
  const std::string suffix = "." + (dot == std::string::npos ? "" : gate.figure.substr(dot + 1));
  std::map<std::string, double> groups;
  for (const auto& [name, value] : result) {
    if (name.starts_with(prefix) && name.ends_with(suffix) &&
        name.size() > prefix.size() + suffix.size()) {
      groups[name.substr(prefix.size(), name.size() - prefix.size() - suffix.size())] = value;
    }
  }
  if (!gate.groups.empty()) {
    std::map<std::string, double> chosen;
    for (const std::string& name : gate.groups) {
      if (!groups.contains(name)) {
        refuse_figure(gate, prefix + name + suffix, result);
      }
      chosen[name] = groups[name];
    }
    groups = chosen;
  }
  for (const auto& [name, value] : groups) {
    const auto items = result.find(prefix + name + ".items");
    if (items == result.end() || items->second < static_cast<double>(gate.least_items)) {
      throw ConfigError(fmt::format(
          "{}: gate {}: group '{}' has {} examples, fewer than least_items {}: add examples, or "
          "name the groups to compare",
          gate.origin, printable(gate.name), printable(name),
          items == result.end() ? 0 : items->second, gate.least_items));
    }
  }
  if (groups.size() < 2) {
    throw ConfigError(fmt::format(
        "{}: gate {}: figure '{}' is known for {} groups, but two are needed: name the group of "
        "each example in the task's file",
        gate.origin, printable(gate.name), printable(gate.figure), groups.size()));
  }
  return groups;
}

GateOutcome judge_groups(const EvalGate& gate, const std::map<std::string, double>& result) {
  const std::map<std::string, double> groups = compared_groups(gate, result);
  GateOutcome outcome{gate.name,
                      gate.figure,
                      fmt::format("groups differ <= {}", gate.bound),
                      std::numeric_limits<double>::quiet_NaN(),
                      "",
                      false};
  const auto not_finite =
      std::ranges::find_if(groups, [](const auto& group) { return !std::isfinite(group.second); });
  if (not_finite != groups.end()) {
    outcome.detail = not_finite->first + " is not finite";
    return outcome;
  }
  const auto [least, most] =
      std::ranges::minmax_element(groups, {}, [](const auto& group) { return group.second; });
  outcome.found = most->second - least->second;
  outcome.detail =
      fmt::format("{} {:.6g}, {} {:.6g}", least->first, least->second, most->first, most->second);
  outcome.met = outcome.found <= gate.bound;
  return outcome;
}

}  // namespace

GateFile load_gates(const std::filesystem::path& file, const std::filesystem::path& baseline) {
  GateFile gates;
  const std::vector<std::string> names = gate_names(file);
  ConfigBinder b;
  b.add_file(file);
  b.path("baseline", gates.baseline, "a result with which gates compare");
  for (const std::string& name : names) {
    bind_gate(b, name, gates.gates);
  }
  b.finish();
  if (gates.gates.empty()) {
    throw ConfigError(fmt::format("{} holds no gates: add some below `gates:`", file.string()));
  }
  if (gates.baseline.is_relative() && !gates.baseline.empty()) {
    gates.baseline = file.parent_path() / gates.baseline;
  }
  if (!baseline.empty()) {
    gates.baseline = baseline;
  }
  for (const EvalGate& gate : gates.gates) {
    if (needs_baseline(gate.rule) && gates.baseline.empty()) {
      throw ConfigError(fmt::format(
          "{}: gate {} compares with a baseline: name its file with `baseline:` or --baseline",
          gate.origin, printable(gate.name)));
    }
  }
  return gates;
}

std::map<std::string, double> result_figures(const nlohmann::json& result) {
  std::map<std::string, double> figures;
  flatten(result, "", figures);
  return figures;
}

std::map<std::string, std::string> result_conditions(const nlohmann::json& result) {
  std::map<std::string, std::string> conditions;
  const auto take = [&](const nlohmann::json& object, const std::string& prefix,
                        std::initializer_list<const char*> fields) {
    for (const char* const field : fields) {
      if (object.is_object() && object.contains(field)) {
        const nlohmann::json& value = object.at(field);
        conditions[prefix + field] =
            value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true);
      }
    }
  };
  const auto part = [&](const char* name) {
    return result.is_object() && result.contains(name) ? result.at(name) : nlohmann::json();
  };
  take(result, "", {"task_sequence", "samples"});
  take(part("data"), "data.", {"sha256", "sequence", "documents"});
  const nlohmann::json tokenizer = part("tokenizer");
  take(tokenizer, "tokenizer.", {"name", "sha256"});
  if (!conditions["tokenizer.sha256"].empty()) {
    conditions.erase("tokenizer.name");  // a tokenizer may have several names
  }
  // Imported checkpoints do not know theirs.
  std::erase_if(conditions, [](const auto& each) { return each.second.empty(); });
  const nlohmann::json tasks = part("tasks");
  for (const auto& [name, task] : tasks.items()) {
    take(task, "tasks." + name + ".", {"kind", "sha256"});
  }
  return conditions;
}

void check_comparable(const std::filesystem::path& file,
                      const std::map<std::string, std::string>& baseline,
                      const std::map<std::string, std::string>& result) {
  const std::string where = "baseline " + printable(file.string());
  if (!baseline.contains("data.sequence") && !baseline.contains("task_sequence")) {
    throw DataError(fmt::format(
        "{}: it does not say on which data it was made, since an older version wrote it: evaluate "
        "that checkpoint again",
        where));
  }
  for (const auto& [name, value] : result) {
    const auto before = baseline.find(name);
    if (before != baseline.end() && before->second != value) {
      throw DataError(fmt::format(
          "{}: its {} is {}, but that of this evaluation is {}: figures of different tests cannot "
          "be compared; make the baseline with the same data, sequence and tokenizer",
          where, printable(name), printable(before->second), printable(value)));
    }
  }
}

EvalBaseline read_baseline(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMostBaselineBytes);
  try {
    const nlohmann::json result = parse_json(text);
    (void)object_field({{"baseline", result}}, "baseline");
    return {result_figures(result), result_conditions(result)};
  } catch (const DataError& error) {
    throw DataError(fmt::format("baseline {}: {}: write it with `trireme eval ... -J FILE`",
                                printable(file.string()), error.what()));
  }
}

std::vector<GateOutcome> judge_gates(const GateFile& file,
                                     const std::map<std::string, double>& result,
                                     const std::map<std::string, double>& baseline) {
  std::vector<GateOutcome> outcomes;
  for (const EvalGate& gate : file.gates) {
    outcomes.push_back(gate.rule == GateRule::groups_differ_at_most ? judge_groups(gate, result)
                       : needs_baseline(gate.rule) ? judge_change(gate, result, baseline)
                                                   : judge_threshold(gate, result));
  }
  return outcomes;
}

bool all_met(const std::vector<GateOutcome>& outcomes) {
  return std::ranges::all_of(outcomes, &GateOutcome::met);
}

nlohmann::ordered_json gates_json(const std::vector<GateOutcome>& outcomes) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const GateOutcome& outcome : outcomes) {
    all.push_back({{"name", outcome.name},
                   {"figure", outcome.figure},
                   {"wanted", outcome.wanted},
                   {"found", outcome.found},
                   {"detail", outcome.detail},
                   {"met", outcome.met}});
  }
  return all;
}

std::string gates_table(const std::vector<GateOutcome>& outcomes) {
  std::string text =
      fmt::format("{:<20}  {:<36}  {:<30}  {:>12}\n", "gate", "figure", "wanted", "found");
  for (const GateOutcome& outcome : outcomes) {
    text += fmt::format("{:<20}  {:<36}  {:<30}  {:>12.6g}  {}{}\n", printable(outcome.name),
                        printable(outcome.figure), outcome.wanted, outcome.found,
                        outcome.met ? "met" : "NOT MET",
                        outcome.detail.empty() ? "" : " (" + printable(outcome.detail) + ")");
  }
  return text;
}

}  // namespace trireme
