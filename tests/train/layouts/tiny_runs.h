// Holds tiny models, the layouts in which to train them, and tokens, for the tests of layouts.
// Ranks are threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "mpi/thread/thread_world.h"
#include "src/base/philox.h"
#include "src/train/engine/train_step.h"

namespace trireme {

inline ModelConfig model_of(Family family, std::int64_t layers) {
  ModelConfig c;
  c.family = family;
  c.layers = layers;
  c.hidden = 16;
  c.heads = 8;
  c.kv_heads = family == Family::gpt2 ? 8 : 4;
  c.ffn = 24;
  c.vocab = 37;
  c.context = 6;
  c.tie_embeddings = true;
  c.dropout = family == Family::gpt2 ? 0.1 : 0;
  c.complete();
  return c;
}

struct Degrees {
  int dp = 1;
  int tp = 1;
  int pp = 1;
};

struct Choice {
  Degrees degrees;
  int zero = 0;
  std::string schedule = "1f1b";
  std::string recompute = "none";
  std::int64_t recompute_every = 1;

  int ranks() const { return degrees.dp * degrees.tp * degrees.pp; }
  std::string text() const {
    return fmt::format("dp {} tp {} pp {} zero {} {} recompute {} every {}", degrees.dp, degrees.tp,
                       degrees.pp, zero, schedule, recompute, recompute_every);
  }
};

inline RunConfig config_of(const ModelConfig& model, const Choice& choice) {
  RunConfig c;
  c.model = model;
  c.data.sequence = 6;
  c.train.steps = 30;
  c.train.global_batch = 16;
  c.train.precision = "fp32";
  c.train.seed = 3;
  c.train.recompute = choice.recompute;
  c.train.recompute_every = choice.recompute_every;
  c.optimizer.lr = 1e-2F;
  c.optimizer.schedule.lr = 1e-2F;
  c.optimizer.schedule.steps = 30;
  c.parallel.dp = {choice.degrees.dp, ""};
  c.parallel.tp = {choice.degrees.tp, ""};
  c.parallel.pp = {choice.degrees.pp, ""};
  c.parallel.zero = choice.zero;
  c.parallel.schedule = choice.schedule;
  c.parallel.virtual_stages = choice.schedule == "interleaved" ? 2 : 1;
  c.parallel.bucket_bytes = 20000;  // several buckets
  return c;
}

// HashedTokens makes tokens that depend only on the step and the number of the micro-batch.
class HashedTokens {
 public:
  // Makes the tokens of the engine's rank, from step `step` on.
  explicit HashedTokens(const Engine& engine, std::int64_t step = 0)
      : engine_(engine), config_(engine.config()), step_(step) {}

  LoadedMicroBatch next() {
    const auto count = static_cast<std::size_t>(config_.train.micro_batch * config_.data.sequence);
    if (given_ == numbers_.size()) {
      step_ += given_ == 0 ? 0 : 1;
      numbers_ = engine_.micro_batches(config_.batches().size_of(step_));
      given_ = 0;
    }
    const std::int64_t number = numbers_[given_++];
    // The tokens count up from a random start, so that the model has something to learn.
    const std::uint64_t first =
        mix64(static_cast<std::uint64_t>(step_) * 1000003 + static_cast<std::uint64_t>(number));
    const auto ids = std::make_shared<std::vector<std::int32_t>>(count + 1);
    for (std::size_t i = 0; i <= count; ++i) {
      (*ids)[i] = static_cast<std::int32_t>((first % 1000 + i) %
                                            static_cast<std::uint64_t>(config_.model.vocab));
    }
    const auto n = static_cast<std::int64_t>(count);
    return {0,
            config_.train.micro_batch,
            config_.data.sequence,
            {ids->data(), n, DType::i32},
            {ids->data() + 1, n, DType::i32},
            ids};
  }

 private:
  const Engine& engine_;
  const RunConfig& config_;
  std::int64_t step_;
  std::vector<std::int64_t> numbers_;  // numbers of this rank's micro-batches in the step
  std::size_t given_ = 0;              // how many of these were returned
};

}  // namespace trireme
