// Scorer computes how likely a model finds given tokens. It keeps the keys and values of its last
// sequence, so that continuations of one context do not compute it again, in memory for the longest
// sequence since the last restart(). Borrows the model and the run; one thread. The results of a
// sequence depend on those before it, since the last restart(), by rounding only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/nn/model.h"

namespace trireme {

struct TokenScore {
  double log_likelihood = 0;  // sum over the tokens, in nats
  bool greedy = true;         // whether each token is the most likely one, by the lowest id
};

class Scorer {
 public:
  // compute: the precision of the activations. window: the most tokens that predict another one,
  // at most the model's context.
  Scorer(const Model& model, Run& run, DType compute, std::int64_t window);

  // Scores a continuation of a context; neither may be empty. If both together have more than
  // window + 1 tokens, the first ones are left out. Throws ConfigError if the continuation alone
  // has more than `window`.
  TokenScore score(std::span<const std::int32_t> context,
                   std::span<const std::int32_t> continuation);
  // Scores all tokens of a document. Each window begins where the one before ends, except for the
  // last, which goes back as far as it can; `before` stands before the first token. This is the
  // harness's loglikelihood_rolling.
  double score_document(std::span<const std::int32_t> ids, std::int32_t before);
  // Returns the logits of the token that follows these: [V]. At most `window` tokens.
  std::vector<float> next_logits(std::span<const std::int32_t> ids);
  // Forgets all sequences.
  void restart();
  std::int64_t window() const { return window_; }

 private:
  void make_room(std::size_t tokens);
  std::size_t keep_common(std::span<const std::int32_t> ids, std::size_t most);
  Tensor append(std::span<const std::int32_t> ids, std::size_t rows);
  void add_rows(const Tensor& logits, std::span<const std::int32_t> targets, TokenScore& score);

  const Model& model_;
  Run& run_;
  DType compute_;
  std::int64_t window_;
  std::optional<KeyValueCache> cache_;
  std::vector<std::int32_t> held_;  // the tokens in the cache
};

}  // namespace trireme
