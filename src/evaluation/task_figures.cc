#include "src/evaluation/task_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/median.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
// The numbers of some items of a task.
using Numbers = std::vector<std::size_t>;

struct Scored {
  const EvalTask& task;
  const std::vector<ItemResult>& results;
};

// Adds the mean and its standard error, which a single value lacks.
void add_mean(const std::string& name, const std::vector<double>& values, NamedFigures& figures) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  const double mean = sum / count;
  figures.emplace_back(name, mean);
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) {
      squares += (value - mean) * (value - mean);
    }
    figures.emplace_back(name + "_stderr", std::sqrt(squares / (count - 1) / count));
  }
}

std::vector<double> hits(const Scored& scored, const Numbers& numbers, ChoiceLength length) {
  std::vector<double> values;
  for (const std::size_t i : numbers) {
    const TaskItem& item = scored.task.items[i];
    const auto chosen = static_cast<std::int64_t>(choice_of(item, scored.results[i], length));
    values.push_back(chosen == item.gold ? 1 : 0);
  }
  return values;
}

std::vector<double> correct(const Scored& scored, const Numbers& numbers) {
  std::vector<double> values;
  for (const std::size_t i : numbers) {
    values.push_back(scored.results[i].correct ? 1 : 0);
  }
  return values;
}

NamedFigures lambada_figures(const Scored& scored, const Numbers& numbers) {
  double sum = 0;
  for (const std::size_t i : numbers) {
    sum += scored.results[i].log_likelihoods.front();
  }
  NamedFigures figures = {{"perplexity", std::exp(-sum / static_cast<double>(numbers.size()))}};
  add_mean("acc", correct(scored, numbers), figures);
  return figures;
}

NamedFigures document_figures(const Scored& scored, const Numbers& numbers) {
  double sum = 0;
  std::int64_t tokens = 0;
  std::int64_t words = 0;
  std::int64_t bytes = 0;
  std::vector<double> each;
  for (const std::size_t i : numbers) {
    const std::string& text = scored.task.items[i].texts.front();
    const ItemResult& result = scored.results[i];
    sum += result.log_likelihoods.front();
    tokens += result.tokens;
    words += word_count(text);
    bytes += std::ssize(text);
    each.push_back(std::exp(-result.log_likelihoods.front() / static_cast<double>(result.tokens)));
  }
  const auto per = [sum](std::int64_t count) { return -sum / static_cast<double>(count); };
  return {{"loss", per(tokens)},
          {"perplexity", std::exp(per(tokens))},
          {"word_perplexity", std::exp(per(words))},
          {"byte_perplexity", std::exp(per(bytes))},
          {"bits_per_byte", per(bytes) / std::numbers::ln2},
          {"document_perplexity_median", median(each)},
          {"document_perplexity_max", *std::ranges::max_element(each)},
          {"tokens", static_cast<double>(tokens)}};
}

NamedFigures figures_of_items(const Scored& scored, const Numbers& numbers) {
  NamedFigures figures;
  switch (scored.task.source.kind) {
    case TaskKind::hellaswag:
    case TaskKind::arc:
      add_mean("acc", hits(scored, numbers, ChoiceLength::none), figures);
      add_mean("acc_norm", hits(scored, numbers, ChoiceLength::characters), figures);
      add_mean("acc_bytes", hits(scored, numbers, ChoiceLength::bytes), figures);
      break;
    case TaskKind::lambada:
      return lambada_figures(scored, numbers);
    case TaskKind::perplexity:
      return document_figures(scored, numbers);
    case TaskKind::exact:
      add_mean("exact_match", correct(scored, numbers), figures);
      break;
  }
  return figures;
}

Json named_json(std::int64_t items, const NamedFigures& figures) {
  Json json = {{"items", items}};
  for (const auto& [name, value] : figures) {
    json[name] = value;
  }
  return json;
}

std::string table_lines(const std::string& title, std::int64_t items, const NamedFigures& figures) {
  std::string text;
  bool first = true;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto& [name, value] = figures[i];
    if (name.ends_with("_stderr")) {
      continue;
    }
    const bool has_error = i + 1 < figures.size() && figures[i + 1].first == name + "_stderr";
    text += fmt::format("{:<28}  {:>8}  {:<26}  {:>12.6g}{}\n", first ? title : "",
                        first ? fmt::format("{}", items) : "", name, value,
                        has_error ? fmt::format(" +- {:.4g}", figures[i + 1].second) : "");
    first = false;
  }
  return text;
}

}  // namespace

std::size_t choice_of(const TaskItem& item, const ItemResult& result, ChoiceLength length) {
  std::size_t chosen = item.texts.size();
  double best = 0;
  for (std::size_t i = 0; i < item.texts.size(); ++i) {
    const std::string_view text = std::string_view(item.texts[i]).substr(1);
    const double divisor = length == ChoiceLength::none ? 1
                           : length == ChoiceLength::bytes
                               ? static_cast<double>(text.size())
                               : static_cast<double>(character_count(text));
    const double score = result.log_likelihoods[i] / divisor;
    if (!std::isnan(score) && (chosen == item.texts.size() || score > best)) {
      chosen = i;
      best = score;
    }
  }
  return chosen;
}

TaskFigures figures_of(const EvalTask& task, const std::vector<ItemResult>& results) {
  check(task.items.size() == results.size(), "every example has a result");
  const Scored scored{task, results};
  Numbers all;
  std::map<std::string, Numbers> by_group;
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(i);
    if (!task.items[i].group.empty()) {
      by_group[task.items[i].group].push_back(i);
    }
  }
  TaskFigures result{task.source.name,
                     task.source.kind,
                     task.source.file.string(),
                     task.digest,
                     std::ssize(results),
                     figures_of_items(scored, all),
                     {}};
  for (const auto& [name, numbers] : by_group) {
    result.groups.push_back({name, std::ssize(numbers), figures_of_items(scored, numbers)});
  }
  return result;
}

TaskFigures figures_in_outline(const EvalTask& task) {
  std::vector<ItemResult> results;
  for (const TaskItem& item : task.items) {
    results.push_back(
        {std::vector<double>(std::max<std::size_t>(item.texts.size(), 1)), false, 1, ""});
  }
  return figures_of(task, results);
}

Json figures_json(const TaskFigures& task) {
  Json json = {{"kind", name_of(task.kind)}, {"file", task.file}, {"sha256", task.digest}};
  json.update(named_json(task.items, task.figures));
  if (!task.groups.empty()) {
    Json groups = Json::object();
    for (const TaskFigures::Group& group : task.groups) {
      groups[group.name] = named_json(group.items, group.figures);
    }
    json["groups"] = groups;
  }
  return json;
}

std::string figures_table(const std::vector<TaskFigures>& tasks) {
  std::string text =
      fmt::format("{:<28}  {:>8}  {:<26}  {:>12}\n", "task", "examples", "figure", "value");
  for (const TaskFigures& task : tasks) {
    text += table_lines(task.name, task.items, task.figures);
    for (const TaskFigures::Group& group : task.groups) {
      text += table_lines("  " + printable(group.name), group.items, group.figures);
    }
  }
  return text;
}

std::string details_text(const EvalTask& task, const std::vector<ItemResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TaskItem& item = task.items[i];
    const ItemResult& result = results[i];
    Json json = {{"task", task.source.name}, {"example", item.number}, {"tokens", result.tokens}};
    if (!item.group.empty()) {
      json["group"] = item.group;
    }
    if (!result.log_likelihoods.empty()) {
      json["log_likelihoods"] = result.log_likelihoods;
    }
    switch (task.source.kind) {
      case TaskKind::hellaswag:
      case TaskKind::arc:
        json["gold"] = item.gold;
        json["chosen"] = choice_of(item, result, ChoiceLength::none);
        json["chosen_norm"] = choice_of(item, result, ChoiceLength::characters);
        break;
      case TaskKind::exact:
        json["answer"] = result.answer;
        [[fallthrough]];
      case TaskKind::lambada:
        json["correct"] = result.correct;
        break;
      case TaskKind::perplexity:
        json["perplexity"] =
            std::exp(-result.log_likelihoods.front() / static_cast<double>(result.tokens));
        break;
    }
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace trireme
