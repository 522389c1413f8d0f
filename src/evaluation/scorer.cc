#include "src/evaluation/scorer.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

// Limits the logits that exist at a time.
constexpr std::size_t kMostLogits = 16U << 20;
// Tokens of the first cache; twice as many once a sequence is longer.
constexpr std::int64_t kFirstCapacity = 1024;

bool is_most_likely(std::span<const float> logits, std::int32_t token) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin() == token;
}

}  // namespace

Scorer::Scorer(const Model& model, Run& run, DType compute, std::int64_t window)
    : model_(model), run_(run), compute_(compute), window_(window) {
  if (window < 1 || window > model.config().context) {
    throw ConfigError(fmt::format("a window of {} tokens: the model's context is {}", window,
                                  model.config().context));
  }
}

void Scorer::restart() {
  cache_.reset();
  held_.clear();
}

// Makes room for a sequence; forgets the last one if that takes another cache.
void Scorer::make_room(std::size_t tokens) {
  const auto wanted = static_cast<std::int64_t>(tokens);
  if (cache_ && wanted <= cache_->capacity()) {
    return;
  }
  std::int64_t capacity = cache_ ? cache_->capacity() : std::min(kFirstCapacity, window_);
  while (capacity < wanted) {
    capacity = std::min(2 * capacity, window_);
  }
  restart();  // frees the memory of the old one first
  cache_.emplace(run_.context, model_.config(), capacity, compute_);
}

// Keeps the tokens in the cache with which `ids` begin, at most `most` of them. Returns how many.
std::size_t Scorer::keep_common(std::span<const std::int32_t> ids, std::size_t most) {
  make_room(ids.size());
  const auto [own, other] = std::mismatch(held_.begin(), held_.end(), ids.begin(), ids.end());
  const std::size_t kept =
      std::min<std::size_t>(most, static_cast<std::size_t>(own - held_.begin()));
  held_.resize(kept);
  cache_->truncate(static_cast<std::int64_t>(kept));
  return kept;
}

Tensor Scorer::append(std::span<const std::int32_t> ids, std::size_t rows) {
  const auto count = static_cast<std::int64_t>(ids.size());
  Tensor logits = model_.decode({ids.data(), count, DType::i32}, *cache_, run_,
                                static_cast<std::int64_t>(rows));
  held_.insert(held_.end(), ids.begin(), ids.end());
  return logits;
}

// logits: f32 [R,V]; targets: [R].
void Scorer::add_rows(const Tensor& logits, std::span<const std::int32_t> targets,
                      TokenScore& score) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  const std::int64_t vocabulary = model_.config().vocab;
  const Tensor ids(run_.pool(), {rows}, DType::i32);
  const Tensor losses(run_.pool(), {rows}, DType::f32);
  run_.context.write<std::int32_t>(
      ids.view(), [&](std::int32_t* to) { std::copy(targets.begin(), targets.end(), to); });
  CrossEntropy call;
  call.rows = rows;
  call.vocabulary = vocabulary;
  call.logits = logits.view();
  call.targets = ids.view();
  call.losses = losses.view();
  call.forward_only = true;
  run_.kernels().cross_entropy(run_.stream(), call);
  for (const float loss : run_.context.read<float>(losses.view())) {
    score.log_likelihood -= static_cast<double>(loss);
  }
  for (std::int64_t row = 0; row < rows && score.greedy; ++row) {
    const std::vector<float> values =
        run_.context.read<float>(logits.view().slice(row * vocabulary, vocabulary));
    score.greedy = is_most_likely(values, targets[static_cast<std::size_t>(row)]);
  }
}

TokenScore Scorer::score(std::span<const std::int32_t> context,
                         std::span<const std::int32_t> continuation) {
  check(!context.empty() && !continuation.empty(), "a continuation and its context have tokens");
  const auto most = static_cast<std::size_t>(window());
  if (continuation.size() > most) {
    throw ConfigError(fmt::format(
        "a continuation has {} tokens, but the model can predict at most {} of a sequence",
        continuation.size(), most));
  }
  std::vector<std::int32_t> ids(context.begin(), context.end());
  ids.insert(ids.end(), continuation.begin(), continuation.end() - 1);
  const std::span<const std::int32_t> read = std::span(ids).last(std::min(ids.size(), most));
  // All but the last tokens of the context are read without computing logits.
  const std::size_t silent = read.size() - continuation.size();
  const std::size_t kept = keep_common(read, silent);
  if (kept < silent) {
    append(read.subspan(kept, silent - kept), 1);
  }
  const std::size_t at_once =
      std::max<std::size_t>(1, kMostLogits / static_cast<std::size_t>(model_.config().vocab));
  TokenScore score;
  for (std::size_t at = 0; at < continuation.size(); at += at_once) {
    const std::size_t rows = std::min(at_once, continuation.size() - at);
    add_rows(append(read.subspan(silent + at, rows), rows), continuation.subspan(at, rows), score);
  }
  return score;
}

double Scorer::score_document(std::span<const std::int32_t> ids, std::int32_t before) {
  const auto most = static_cast<std::size_t>(window());
  double sum = 0;
  for (std::size_t done = 0; done < ids.size();) {
    const std::size_t count = std::min(most, ids.size() - done);
    const std::size_t end = done + count;
    if (done == 0) {
      sum += score({&before, 1}, ids.first(count)).log_likelihood;
    } else {
      const std::size_t first = end - most - 1;
      sum += score(ids.subspan(first, done - first), ids.subspan(done, count)).log_likelihood;
    }
    done = end;
  }
  return sum;
}

std::vector<float> Scorer::next_logits(std::span<const std::int32_t> ids) {
  check(std::ssize(ids) <= window_, "the sequence fits into the window");
  const std::size_t kept = keep_common(ids, ids.size() - 1);
  return run_.context.read<float>(append(ids.subspan(kept), 1).view());
}

}  // namespace trireme
