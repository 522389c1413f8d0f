#include "src/evaluation/task_run.h"

#include <algorithm>
#include <cstring>

#include "io/tokens/unicode.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/evaluation/python_text.h"
#include "src/nn/sampling.h"

namespace trireme {
namespace {

// ResultText packs results into text, which ranks can gather, and takes them out again.
class ResultText {
 public:
  explicit ResultText(std::string text = "") : text_(std::move(text)) {}
  void put(const ItemResult& result) {
    put_number(static_cast<std::int64_t>(result.log_likelihoods.size()));
    for (const double value : result.log_likelihoods) {
      put_number(value);
    }
    put_number(std::int64_t{result.correct});
    put_number(result.tokens);
    put_number(static_cast<std::int64_t>(result.answer.size()));
    text_ += result.answer;
  }
  ItemResult take() {
    ItemResult result;
    result.log_likelihoods.resize(static_cast<std::size_t>(take_number<std::int64_t>()));
    for (double& value : result.log_likelihoods) {
      value = take_number<double>();
    }
    result.correct = take_number<std::int64_t>() != 0;
    result.tokens = take_number<std::int64_t>();
    const auto bytes = static_cast<std::size_t>(take_number<std::int64_t>());
    result.answer = text_.substr(at_, bytes);
    at_ += bytes;
    return result;
  }
  const std::string& text() const { return text_; }

 private:
  template <class Number>
  void put_number(Number number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  template <class Number>
  Number take_number() {
    Number number{};
    std::memcpy(&number, text_.data() + at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }

  std::string text_;
  std::size_t at_ = 0;
};

std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

// Returns where the first of the texts begins in `text`, or its size.
std::size_t end_of_answer(std::string_view text, const std::vector<std::string>& stop) {
  std::size_t end = text.size();
  for (const std::string& each : stop) {
    end = std::min(end, text.find(each));
  }
  return end;
}

class TaskScoring {
 public:
  TaskScoring(const TaskPlan& plan, Scorer& scorer, const Tokenizer& tokenizer)
      : plan_(plan), scorer_(scorer), tokenizer_(tokenizer) {}

  ItemResult result_of(TaskKind kind, const TaskItem& item) {
    scorer_.restart();
    switch (kind) {
      case TaskKind::perplexity:
        return document(item);
      case TaskKind::exact:
        return answer(item);
      case TaskKind::hellaswag:
      case TaskKind::arc:
      case TaskKind::lambada:
        break;
    }
    ItemResult result;
    for (const std::string& text : item.texts) {
      const ContextTokens ids = encode_pair(tokenizer_, item.context, text);
      if (ids.continuation.empty()) {
        throw DataError(fmt::format("the tokenizer makes no tokens of '{}'", printable(text)));
      }
      const TokenScore score = scorer_.score(ids.context, ids.continuation);
      result.log_likelihoods.push_back(score.log_likelihood);
      result.correct = score.greedy;
      result.tokens += std::ssize(ids.continuation);
    }
    return result;
  }

 private:
  ItemResult document(const TaskItem& item) {
    const std::vector<std::int32_t> ids = encoded(tokenizer_, item.texts.front());
    if (ids.empty()) {
      throw DataError("the tokenizer makes no tokens of it");
    }
    ItemResult result;
    result.log_likelihoods = {scorer_.score_document(ids, tokenizer_.end_of_document())};
    result.tokens = std::ssize(ids);
    return result;
  }

  // Generates with the most likely tokens. A prompt that leaves no room for the answer loses its
  // first tokens.
  ItemResult answer(const TaskItem& item) {
    std::vector<std::int32_t> ids = encoded(tokenizer_, item.context);
    if (ids.empty()) {
      ids.push_back(tokenizer_.end_of_document());
    }
    const std::int64_t room = scorer_.window() - plan_.most_tokens + 1;
    if (std::ssize(ids) > room) {
      ids.erase(ids.begin(), ids.end() - room);
    }
    const std::size_t prompt = ids.size();
    const std::vector<std::string> stop =
        plan_.stop.empty() ? std::vector<std::string>{"\n"} : plan_.stop;
    ItemResult result;
    while (result.tokens < plan_.most_tokens) {
      const std::vector<float> logits = scorer_.next_logits(ids);
      const auto known = static_cast<std::size_t>(
          std::min(std::ssize(logits), static_cast<std::ptrdiff_t>(tokenizer_.vocab())));
      const std::int32_t token =
          sample_token(std::span(logits).first(known), {.temperature = 0}, std::ssize(ids));
      ++result.tokens;
      if (token == tokenizer_.end_of_document() ||
          std::ranges::find(plan_.ends, token) != plan_.ends.end()) {
        break;
      }
      ids.push_back(token);
      result.answer = tokenizer_.decode(std::span(ids).subspan(prompt));
      if (end_of_answer(result.answer, stop) < result.answer.size()) {
        break;
      }
    }
    result.answer.resize(end_of_answer(result.answer, stop));
    const std::string given = with_replacements(result.answer);
    result.correct = std::ranges::any_of(item.texts, [&](const std::string& text) {
      return python_strip(text) == python_strip(given);
    });
    return result;
  }

  const TaskPlan& plan_;
  Scorer& scorer_;
  const Tokenizer& tokenizer_;
};

}  // namespace

ContextTokens encode_pair(const Tokenizer& tokenizer, std::string_view context,
                          std::string_view continuation) {
  const std::string_view kept = python_rstrip(context);
  const std::string whole = std::string(context) + std::string(continuation);
  ContextTokens ids;
  ids.context = encoded(tokenizer, kept);
  std::vector<std::int32_t> all = encoded(tokenizer, whole);
  const std::size_t border = std::min(ids.context.size(), all.size());
  ids.continuation.assign(all.begin() + static_cast<std::ptrdiff_t>(border), all.end());
  if (ids.context.empty()) {
    ids.context.push_back(tokenizer.end_of_document());
  }
  return ids;
}

std::vector<ItemResult> run_task(const EvalTask& task, const TaskPlan& plan, Scorer& scorer,
                                 const Tokenizer& tokenizer, Communicator& world,
                                 const TaskProgress& progress) {
  TaskScoring scoring(plan, scorer, tokenizer);
  const std::size_t count = task.items.size();
  const auto ranks = static_cast<std::size_t>(world.size());
  ResultText own;
  std::string fault;
  bool is_usage = false;
  std::int64_t done = 0;
  for (auto i = static_cast<std::size_t>(world.rank()); i < count && fault.empty(); i += ranks) {
    try {
      own.put(scoring.result_of(task.source.kind, task.items[i]));
      progress(++done);
    } catch (const Error& error) {
      if (error.exit_code() != ExitCode::bad_data && error.exit_code() != ExitCode::usage) {
        throw;
      }
      is_usage = error.exit_code() == ExitCode::usage;
      fault = fmt::format("{}, example {}: {}", printable(task.source.file.string()),
                          task.items[i].number, error.what());
    }
  }
  const std::string faults = gather_faults(world, fault);
  const std::int64_t usage = all_reduce_value(world, std::int64_t{is_usage}, ReduceOp::max);
  if (!faults.empty() && usage > 0) {
    throw ConfigError(faults);
  }
  if (!faults.empty()) {
    throw DataError(faults);
  }
  std::vector<ResultText> all;
  for (std::string& text : all_gather_text(world, own.text())) {
    all.emplace_back(std::move(text));
  }
  std::vector<ItemResult> results;
  for (std::size_t i = 0; i < count; ++i) {
    results.push_back(all[i % ranks].take());
  }
  return results;
}

}  // namespace trireme
