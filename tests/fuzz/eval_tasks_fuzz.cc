// Reads any bytes as the examples of evaluation tasks of every kind, and forms figures of them.
#include <nlohmann/json.hpp>

#include "src/evaluation/python_text.h"
#include "src/evaluation/task_figures.h"
#include "src/evaluation/task_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void score(const trireme::EvalTask& task) {
  std::vector<trireme::ItemResult> results;
  for (const trireme::TaskItem& item : task.items) {
    trireme::require(!item.texts.empty());
    trireme::ItemResult result;
    result.log_likelihoods.assign(item.texts.size(), -1.0);
    result.tokens = 1;
    results.push_back(result);
    const bool chooses = task.source.kind == trireme::TaskKind::hellaswag ||
                         task.source.kind == trireme::TaskKind::arc;
    trireme::require(item.gold >= 0 && item.gold < std::ssize(item.texts));
    trireme::require(!chooses || trireme::choice_of(item, result, trireme::ChoiceLength::bytes) <
                                     item.texts.size());
  }
  const trireme::TaskFigures figures = trireme::figures_of(task, results);
  trireme::require(figures.groups.size() == task.groups().size());
  (void)trireme::figures_json(figures).dump();
  const std::string table = trireme::figures_table({figures});
  trireme::require(table.find('\x1b') == std::string::npos);
  (void)trireme::details_text(task, results);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  for (const char* kind : {"hellaswag", "arc", "lambada", "perplexity", "exact"}) {
    refuses_only_with<DataError>(
        [&] { score(parse_task(parse_task_source(std::string(kind) + ":f"), text, "group")); });
  }
  refuses_only_with<ConfigError>([&] { (void)parse_task_source(text); });
  (void)word_count(text);
  require(character_count(text) <= static_cast<std::int64_t>(bytes));
  return 0;
}
