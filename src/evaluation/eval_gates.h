// Gates that the result of an evaluation has to pass, from a YAML file:
//
//   baseline: results/last.json              # a result of the same command; relative to this file
//   gates:
//     quality: {figure: tasks.hellaswag.acc_norm, at_least: 0.3}
//     drift:   {figure: loss, rise_at_most: 2%}
//     drop:    {figure: tasks.hellaswag.acc_norm, drop_at_most: 0.01}
//     bias:    {figure: tasks.questions.acc, groups_differ_at_most: 0.05, least_items: 50}
//
// A figure is a number of the result's JSON, named by its fields with dots between them. Plain
// values; for one thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

enum class GateRule { at_least, at_most, drop_at_most, rise_at_most, groups_differ_at_most };

struct EvalGate {
  std::string name;
  std::string figure;
  GateRule rule = GateRule::at_least;
  double bound = 0;
  bool relative = false;            // the bound is a fraction of the baseline's figure
  std::vector<std::string> groups;  // to be compared; empty for all
  std::int64_t least_items = 1;     // examples that each compared group has at least
  std::string origin;               // "gates.yaml:4"
};

struct GateFile {
  std::filesystem::path baseline;  // empty if no gate needs one
  std::vector<EvalGate> gates;
};

struct GateOutcome {
  std::string name, figure;
  std::string wanted;  // such as ">= 0.3" or "drop <= 0.01 from 0.41"
  double found = 0;    // the figure, or the difference between groups
  std::string detail;  // which groups differ most; else empty
  bool met = false;
};

// baseline: replaces that of the file unless it is empty. Throws a ConfigError that lists all
// problems with file and line.
GateFile load_gates(const std::filesystem::path& file, const std::filesystem::path& baseline = {});

// Returns all numbers of a result by their names. A null, as NaN and infinity are written, is NaN.
std::map<std::string, double> result_figures(const nlohmann::json& result);
// Returns on what a result was found, by the names of the fields, such as data.sha256, so that two
// results with a condition of the same name can be compared only if it has the same value.
std::map<std::string, std::string> result_conditions(const nlohmann::json& result);

struct EvalBaseline {
  std::map<std::string, double> figures;
  std::map<std::string, std::string> conditions;
};
// Reads a result that `eval` wrote before. Throws NotFound, IoError, and a DataError that names the
// file.
EvalBaseline read_baseline(const std::filesystem::path& file);
// Throws DataError if a baseline was made on other data than the result, with another length of
// sequences or another tokenizer, or does not say.
void check_comparable(const std::filesystem::path& file,
                      const std::map<std::string, std::string>& baseline,
                      const std::map<std::string, std::string>& result);

// Judges every gate. A figure that is NaN meets none. Throws ConfigError if the result lacks a
// figure, DataError if the baseline does.
std::vector<GateOutcome> judge_gates(const GateFile& file,
                                     const std::map<std::string, double>& result,
                                     const std::map<std::string, double>& baseline);
bool all_met(const std::vector<GateOutcome>& outcomes);

nlohmann::ordered_json gates_json(const std::vector<GateOutcome>& outcomes);
std::string gates_table(const std::vector<GateOutcome>& outcomes);

}  // namespace trireme
