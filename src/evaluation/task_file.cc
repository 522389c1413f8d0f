#include "src/evaluation/task_file.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "io/tokens/unicode.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/evaluation/python_text.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::pair<TaskKind, std::string_view> kKinds[] = {{TaskKind::hellaswag, "hellaswag"},
                                                            {TaskKind::arc, "arc"},
                                                            {TaskKind::lambada, "lambada"},
                                                            {TaskKind::perplexity, "perplexity"},
                                                            {TaskKind::exact, "exact"}};

bool is_task_name(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, allowed);
}

// Returns the text of a list's entry.
const std::string& entry_text(const json& entry, const char* name) {
  if (!entry.is_string()) {
    throw DataError(fmt::format("field '{}' is not a list of texts", name));
  }
  return entry.get_ref<const std::string&>();
}

std::vector<std::string> choices_of(const json& list, const char* name) {
  std::vector<std::string> texts;
  for (const json& entry : list) {
    texts.push_back(entry_text(entry, name));
  }
  if (texts.size() < 2 || texts.size() > kMostChoices) {
    throw DataError(fmt::format("field '{}' has {} choices, but a question has from 2 to {}", name,
                                texts.size(), kMostChoices));
  }
  return texts;
}

// Returns what re.sub("\\[.*?\\]", "", text) returns in Python.
std::string without_brackets(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '[' ? text.find_first_of("]\n", at) : std::string::npos;
    if (end != std::string::npos && text[end] == ']') {
      at = end + 1;
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::string without_wikihow_marks(const std::string& text) {
  const std::string sentences = python_replaced(python_strip(text), " [title]", ". ");
  return python_replaced(without_brackets(sentences), "  ", " ");
}

// Returns the number that a label holds as text or as a number.
std::int64_t label_number(const json& example, std::size_t choices) {
  const json& label = field(example, "label");
  if (!label.is_string()) {
    return count_field(example, "label", 0, static_cast<std::int64_t>(choices) - 1);
  }
  const auto& text = label.get_ref<const std::string&>();
  std::int64_t number = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0 ||
      number >= static_cast<std::int64_t>(choices)) {
    throw DataError(fmt::format(
        "field 'label' is '{}', not the number of one of the {} endings, from 0: files without "
        "labels, such as hellaswag's test set, cannot be scored",
        printable(text), choices));
  }
  return number;
}

void read_hellaswag(const json& example, TaskItem& item) {
  const std::string scene =
      text_field(example, "ctx_a") + " " + python_capitalized(text_field(example, "ctx_b"));
  item.context = without_wikihow_marks(text_field(example, "activity_label") + ": " + scene);
  for (const std::string& ending : choices_of(array_field(example, "endings"), "endings")) {
    item.texts.push_back(" " + without_wikihow_marks(ending));
  }
  item.gold = label_number(example, item.texts.size());
}

struct ArcQuestion {
  std::string stem;
  std::vector<std::string> texts, labels;
};

// Reads the form of the data set's authors, {"question": {"stem", "choices": [{"text", "label"}]}},
// or that of Hugging Face's hub, {"question", "choices": {"text": [], "label": []}}.
ArcQuestion arc_question(const json& example) {
  ArcQuestion question;
  if (const json& first = field(example, "question"); first.is_object()) {
    question.stem = text_field(first, "stem");
    json texts = json::array();
    for (const json& choice : array_field(first, "choices")) {
      texts.push_back(text_field(choice, "text"));
      question.labels.push_back(text_field(choice, "label"));
    }
    question.texts = choices_of(texts, "choices");
    return question;
  }
  question.stem = text_field(example, "question");
  const json& choices = object_field(example, "choices");
  question.texts = choices_of(array_field(choices, "text"), "text");
  for (const json& label : array_field(choices, "label")) {
    question.labels.push_back(entry_text(label, "label"));
  }
  if (question.labels.size() != question.texts.size()) {
    throw DataError(fmt::format("it has {} choices, but {} labels", question.texts.size(),
                                question.labels.size()));
  }
  return question;
}

void read_arc(const json& example, TaskItem& item) {
  const ArcQuestion question = arc_question(example);
  item.context = fmt::format("Question: {}\nAnswer:", question.stem);
  for (const std::string& text : question.texts) {
    item.texts.push_back(" " + text);
  }
  const std::string& key = text_field(example, "answerKey");
  const auto found = std::ranges::find(question.labels, key);
  if (found == question.labels.end()) {
    throw DataError(
        fmt::format("field 'answerKey' is '{}', which is the label of no choice", printable(key)));
  }
  item.gold = found - question.labels.begin();
}

void read_lambada(const json& example, TaskItem& item) {
  const std::string& text = text_field(example, "text");
  const std::size_t blank = text.rfind(' ');
  const std::string word = blank == std::string::npos ? text : text.substr(blank + 1);
  if (word.empty()) {
    throw DataError("field 'text' does not end with a word: remove the blanks at its end");
  }
  item.context = blank == std::string::npos ? "" : text.substr(0, blank);
  item.texts = {" " + word};
}

void read_perplexity(const json& example, TaskItem& item) {
  item.texts = {text_field(example, "text")};
  if (item.texts.front().empty()) {
    throw DataError("field 'text' is empty: remove the example");
  }
}

void read_exact(const json& example, TaskItem& item) {
  item.context = text_field(example, "prompt");
  const json& answer = field(example, "answer");
  if (answer.is_array()) {
    for (const json& each : answer) {
      item.texts.push_back(entry_text(each, "answer"));
    }
  } else {
    item.texts.push_back(text_field(example, "answer"));
  }
  if (item.texts.empty() || item.texts.size() > kMostChoices) {
    throw DataError(fmt::format("field 'answer' has {} texts, but it takes from 1 to {}",
                                item.texts.size(), kMostChoices));
  }
}

// Refuses empty choices, since scores are divided by their lengths.
void check_choices(const TaskItem& item) {
  for (const std::string& text : item.texts) {
    if (text == " ") {
      throw DataError(
          "one of its choices is empty, so that no likelihood can be divided by its "
          "length");
    }
  }
}

TaskItem read_item(TaskKind kind, const json& example, const std::string& group_field) {
  if (!example.is_object()) {
    throw DataError("it is not a JSON object");
  }
  TaskItem item;
  switch (kind) {
    case TaskKind::hellaswag:
      read_hellaswag(example, item);
      check_choices(item);
      break;
    case TaskKind::arc:
      read_arc(example, item);
      check_choices(item);
      break;
    case TaskKind::lambada:
      read_lambada(example, item);
      break;
    case TaskKind::perplexity:
      read_perplexity(example, item);
      break;
    case TaskKind::exact:
      read_exact(example, item);
      break;
  }
  if (example.contains(group_field)) {
    item.group = text_field(example, group_field.c_str());
    if (item.group.empty() || item.group.size() > 200) {
      throw DataError(
          fmt::format("field '{}' names no group: it has {} bytes, but a name has from "
                      "1 to 200",
                      printable(group_field), item.group.size()));
    }
  }
  return item;
}

void add_item(EvalTask& task, const json& example, std::int64_t number,
              const std::string& group_field) {
  task.items.push_back(read_item(task.source.kind, example, group_field));
  task.items.back().number = number;
}

void add_line(EvalTask& task, std::string_view line, std::int64_t number,
              const std::string& group_field) {
  try {
    add_item(task, parse_json(line), number, group_field);
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}:{}", task.source.file.string(), number), error);
  }
}

void add_array(EvalTask& task, std::string_view text, const std::string& group_field) {
  std::int64_t number = 0;
  try {
    const json all = parse_json(text);
    for (const json& example : all) {
      ++number;
      add_item(task, example, number, group_field);
    }
  } catch (const DataError& error) {
    const std::string where = number == 0 ? "" : fmt::format(": example {}", number);
    throw data_error_in(task.source.file.string() + where, error);
  }
}

}  // namespace

std::string_view name_of(TaskKind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<TaskKind, std::string_view>::first)->second;
}

std::vector<std::string> EvalTask::groups() const {
  std::set<std::string> names;
  for (const TaskItem& item : items) {
    if (!item.group.empty()) {
      names.insert(item.group);
    }
  }
  return {names.begin(), names.end()};
}

TaskSource parse_task_source(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.substr(0, colon).find('=');
  const std::string_view kind = equals == std::string_view::npos
                                    ? text.substr(0, colon)
                                    : text.substr(0, colon).substr(equals + 1);
  const auto found =
      std::ranges::find(kKinds, kind, &std::pair<TaskKind, std::string_view>::second);
  if (colon == std::string_view::npos || colon + 1 == text.size() || found == std::end(kKinds)) {
    throw ConfigError(fmt::format(
        "--task {}: it is not KIND:FILE or NAME=KIND:FILE, where KIND is hellaswag, arc, lambada, "
        "perplexity or exact",
        printable(text)));
  }
  TaskSource source;
  source.kind = found->first;
  source.name = equals == std::string_view::npos ? kind : text.substr(0, equals);
  source.file = text.substr(colon + 1);
  if (!is_task_name(source.name)) {
    throw ConfigError(
        fmt::format("--task {}: the name '{}' is not made of up to 64 letters, digits, '-' and '_'",
                    printable(text), printable(source.name)));
  }
  return source;
}

EvalTask parse_task(const TaskSource& source, std::string_view text,
                    const std::string& group_field) {
  EvalTask task{source, sha256_hex(text), {}};
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    add_array(task, text, group_field);
  } else {
    std::int64_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        add_line(task, line, number, group_field);
      }
    }
  }
  if (task.items.empty()) {
    throw DataError(fmt::format("{} holds no examples: write one JSON object per line, or an array",
                                printable(source.file.string())));
  }
  return task;
}

std::int64_t word_count(std::string_view text) {
  const std::string whole = with_replacements(text);
  std::int64_t words = 1;
  bool in_space = false;
  for (std::size_t at = 0; at < whole.size();) {
    const bool space = is_python_space(next_character(whole, at));
    words += space && !in_space ? 1 : 0;
    in_space = space;
  }
  return words;
}

std::int64_t character_count(std::string_view text) {
  const std::string whole = with_replacements(text);
  std::int64_t count = 0;
  for (std::size_t at = 0; at < whole.size(); ++count) {
    next_character(whole, at);
  }
  return count;
}

}  // namespace trireme
