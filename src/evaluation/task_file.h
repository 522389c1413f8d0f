// Reads the examples of evaluation tasks from the files of their users, and forms from each one the
// texts that lm-evaluation-harness forms. Pure functions but for read_task().
//
//   kind        fields of an example                          context and continuations
//   hellaswag   activity_label, ctx_a, ctx_b, endings, label  "LABEL: A B", " ENDING" each
//   arc         question, choices {text, label}, answerKey    "Question: Q\nAnswer:", " TEXT" each
//   lambada     text                                          all but the last word; " WORD"
//   perplexity  text                                          none; the text
//   exact       prompt, answer (a text, or a list of texts)   the prompt; accepted answers
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class TaskKind { hellaswag, arc, lambada, perplexity, exact };
std::string_view name_of(TaskKind kind);

// Says which file holds the examples of a task.
struct TaskSource {
  std::string name;  // letters, digits, '-' and '_'
  TaskKind kind = TaskKind::exact;
  std::filesystem::path file;
};

struct TaskItem {
  std::string context;
  std::vector<std::string> texts;  // continuations with the blank before them, or accepted answers
  std::int64_t gold = 0;           // the number of the right continuation
  std::string group;               // empty for none
  std::int64_t number = 0;         // line of a JSON Lines file, or place in an array, from 1
};

struct EvalTask {
  TaskSource source;
  std::string digest;  // SHA-256 of the file
  std::vector<TaskItem> items;
  // Returns the names of the groups in alphabetical order.
  std::vector<std::string> groups() const;
};

inline constexpr std::int64_t kMostTaskBytes = std::int64_t{256} << 20;
inline constexpr std::size_t kMostChoices = 64;

// text: "KIND:FILE" or "NAME=KIND:FILE"; without a name, the task is named after its kind. Throws
// ConfigError.
TaskSource parse_task_source(std::string_view text);

// text: the contents of the file, one JSON object per line or one array of objects. group_field:
// the field that names the group of an example, if it has one. Throws DataError with file and line.
EvalTask parse_task(const TaskSource& source, std::string_view text,
                    const std::string& group_field);

// Returns the number of words as the harness counts them: Python's len(re.split(r"\s+", text)).
std::int64_t word_count(std::string_view text);
// Returns the number of characters of a text; bytes that are not UTF-8 count as U+FFFD.
std::int64_t character_count(std::string_view text);

}  // namespace trireme
