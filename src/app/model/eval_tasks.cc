#include "src/app/model/eval_tasks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "mpi/agreement.h"
#include "src/app/command/number_check.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/progress_bar.h"

namespace trireme {
namespace {

void check_plausible(const EvalTask& task, const std::vector<ItemResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const double value : results[i].log_likelihoods) {
      if (std::isnan(value)) {
        throw DivergenceError(fmt::format(
            "the likelihoods of {}, example {}, are not numbers: the run had diverged; evaluate an "
            "older step, named by its own folder",
            printable(task.source.file.string()), task.items[i].number));
      }
    }
  }
}

}  // namespace

void TaskOptions::add_to(CommandLine& command) {
  command
      .add_option("--task", tasks,
                  "Score the examples of FILE, of the kind hellaswag, arc, lambada, perplexity or "
                  "exact; can be repeated")
      .type_name("[NAME=]KIND:FILE")
      .one_value_per_use();
  tokenizer.add_to(command);
  command
      .add_option("--group-field", group_field,
                  "The field that names the group of an example, for figures by group")
      .type_name("NAME");
  command
      .add_option("--task-tokens", task_tokens,
                  "Generate at most N tokens for an answer of an exact task")
      .check(positive_count());
  command
      .add_option("--stop", stop,
                  "End such an answer before this string; can be repeated (default: the end of "
                  "the line)")
      .one_value_per_use();
  command.add_option("--details", details, "Write a line of JSON for each example to FILE")
      .type_name("FILE")
      .written();
  command
      .add_option("--gate", gate,
                  "A YAML file of gates that the result has to pass, else the exit code is 4")
      .type_name("FILE");
  command
      .add_option("--baseline", baseline,
                  "A result written with -J, with which gates compare (default: the one that the "
                  "file of gates names)")
      .type_name("FILE");
}

std::vector<EvalTask> read_tasks(const TaskOptions& options, Communicator& world) {
  std::vector<TaskSource> sources;
  std::set<std::string> names;
  for (const std::string& text : options.tasks) {
    sources.push_back(parse_task_source(text));
    if (!names.insert(sources.back().name).second) {
      throw ConfigError(fmt::format("two tasks are named {}: name them with --task NAME=KIND:FILE",
                                    sources.back().name));
    }
  }
  for (const std::string& text : options.stop) {
    if (text.empty()) {
      throw ConfigError("--stop is empty: name the text at which an answer ends");
    }
  }
  std::vector<EvalTask> tasks;
  for (const TaskSource& source : sources) {
    const std::string text =
        run_on_root(world, [&] { return read_file(source.file, kMostTaskBytes); });
    tasks.push_back(parse_task(source, text, options.group_field));
  }
  return tasks;
}

std::vector<TaskFigures> run_tasks(const std::vector<EvalTask>& tasks, const TaskOptions& options,
                                   const LoadedModel& loaded, DeviceContext& device,
                                   std::int64_t window, Communicator& world) {
  std::vector<TaskFigures> figures;
  if (tasks.empty()) {
    return figures;
  }
  const bool generates = std::ranges::any_of(
      tasks, [](const EvalTask& task) { return task.source.kind == TaskKind::exact; });
  if (generates && options.task_tokens >= window) {
    throw ConfigError(
        fmt::format("--task-tokens {} leaves no room for a prompt: the model reads at most {} "
                    "tokens",
                    options.task_tokens, window));
  }
  const auto tokenizer = options.tokenizer.open(loaded, false);
  Run run{.context = device, .parameters = *loaded.parameters, .dropout = {}};
  run.packed = loaded.packed.get();
  Scorer scorer(*loaded.model, run, loaded.compute, window);
  std::string details;
  for (const EvalTask& task : tasks) {
    const auto items = std::ssize(task.items);
    std::optional<ProgressBar> bar;
    if (world.rank() == 0) {
      bar.emplace(task.source.name, items, std::chrono::seconds(10));
      bar->update(0, "examples");
    }
    const TaskProgress progress = [&](std::int64_t done) {
      if (bar) {
        bar->update(std::min<std::int64_t>(done * world.size(), items), "examples");
      }
    };
    const TaskPlan plan{options.task_tokens, options.stop, loaded.text.ends};
    const std::vector<ItemResult> results =
        run_task(task, plan, scorer, *tokenizer, world, progress);
    check_plausible(task, results);
    figures.push_back(figures_of(task, results));
    details += options.details.empty() ? "" : details_text(task, results);
  }
  if (!options.details.empty()) {
    run_on_root(world, [&]() -> std::string {
      write_named_file(options.details, details);
      return "";
    });
  }
  return figures;
}

ReadGates read_gates(const TaskOptions& options, Communicator& world) {
  ReadGates gates;
  if (options.gate.empty()) {
    if (!options.baseline.empty()) {
      throw ConfigError("--baseline is for the gates of --gate FILE, which is missing");
    }
    return gates;
  }
  run_on_root(world, [&]() -> std::string {
    gates.file = load_gates(options.gate, options.baseline);
    if (!gates.file.baseline.empty()) {
      gates.baseline = read_baseline(gates.file.baseline);
    }
    return "";
  });
  return gates;
}

}  // namespace trireme
