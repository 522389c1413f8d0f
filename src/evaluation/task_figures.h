// The figures of a task: what its examples have in common, as lm-evaluation-harness computes it.
// Pure functions.
//
//   acc         part of the examples whose right continuation is the most likely one; lambada: part
//               whose word is the most likely continuation, token by token
//   acc_norm    the same, with each log-likelihood divided by the characters of the continuation,
//   acc_bytes   and by its bytes in UTF-8, both without the blank before it
//   exact_match part of the examples whose generated answer is an accepted one
//   loss, perplexity, word_perplexity, byte_perplexity, bits_per_byte
//               by tokens, words and bytes of all documents; lambada's perplexity is by examples
//   *_stderr    the standard error of a mean
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/evaluation/task_run.h"

namespace trireme {

// Names and values, in the order in which they are shown.
using NamedFigures = std::vector<std::pair<std::string, double>>;

struct TaskFigures {
  std::string name;
  TaskKind kind = TaskKind::exact;
  std::string file, digest;
  std::int64_t items = 0;
  NamedFigures figures;
  struct Group {
    std::string name;
    std::int64_t items = 0;
    NamedFigures figures;
  };
  std::vector<Group> groups;
};

// Returns which continuation is chosen: the first of those with the largest log-likelihood, which
// is divided by a length of each text without its leading blank. NaN is never chosen.
enum class ChoiceLength { none, characters, bytes };
std::size_t choice_of(const TaskItem& item, const ItemResult& result, ChoiceLength length);

// results: as many as the task has items.
TaskFigures figures_of(const EvalTask& task, const std::vector<ItemResult>& results);

// Returns figures of the same names and counts, whatever the results will be, before there are any.
TaskFigures figures_in_outline(const EvalTask& task);

nlohmann::ordered_json figures_json(const TaskFigures& task);
// Returns the lines of a table with all tasks and groups.
std::string figures_table(const std::vector<TaskFigures>& tasks);
// Returns one line of JSON for each example: what was scored, chosen or generated.
std::string details_text(const EvalTask& task, const std::vector<ItemResult>& results);

}  // namespace trireme
