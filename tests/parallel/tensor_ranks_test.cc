// Tensor-parallel ranks together compute what one rank computes alone: losses and gradients, put
// together from the ranks' parts, agree to rounding, and what all ranks hold is the same on all.
#include "src/parallel/tensor_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "tests/nn/tiny_model.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

struct Case {
  std::string name;
  ModelConfig config;
  int ranks = 2;
  Recompute recompute = {};
  bool later = false;
  bool sequence_parallel = false;
};

// Outcome holds gradients as logical tensors. Every rank adds its copy of elements that several
// ranks hold.
struct Outcome {
  std::vector<double> losses;  // one per rank
  std::vector<double> evaluated;
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::string, std::vector<int>> holders;
  bool copies_agree = true;
};

void add_gradients(const TinyModel& tiny, GradientSink& sink, Outcome& outcome) {
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    const Parameter& p = tiny.store[id];
    const auto size = static_cast<std::size_t>(p.place.whole.elements());
    std::vector<float>& whole = outcome.gradients[p.name];
    std::vector<int>& holders = outcome.holders[p.name];
    whole.resize(size);
    holders.resize(size);
    const auto* g = as<float>(sink.gradient(id));
    for (const HeldRun& run : runs_of(p.place, 0, p.elements())) {
      for (std::int64_t i = 0; i < run.elements; ++i) {
        const auto at = static_cast<std::size_t>(run.whole_first + i);
        const float value = g[run.held_first + i];
        if (holders[at]++ > 0) {
          outcome.copies_agree =
              outcome.copies_agree && std::memcmp(&whole[at], &value, sizeof value) == 0;
        }
        whole[at] = value;
      }
    }
  }
}

void run_rank(const Case& c, DType compute, TensorGroup* group, Outcome& outcome,
              std::mutex& mutex) {
  ModelSlice slice = ModelSlice::whole(c.config);
  slice.recompute = c.recompute;
  if (group != nullptr) {
    slice.tensor_rank = group->rank();
    slice.tensor_ranks = group->size();
  }
  TinyModel tiny(c.config, slice, compute, kernels_for(Device::cpu()));
  tiny.run.group = group;
  tiny.run.sequence_parallel = c.sequence_parallel;
  const Tokens tokens(3, 12, c.config.vocab, 1);
  const double evaluated = tiny.model.evaluate(tokens.micro_batch, tiny.run);
  tiny.run.training = true;
  Saved saved;
  WeightGradients later;
  tiny.model.forward(tokens.micro_batch, {}, saved, tiny.run);
  tiny.run.later = c.later ? &later : nullptr;
  tiny.model.backward(tokens.micro_batch, {}, 0.125F, saved, tiny.run);
  const double loss = *as<double>(tiny.loss.view());
  // The postponed work runs in a pass of its own.
  Run then = tiny.run;
  then.later = nullptr;
  then.batch = 0;
  then.time = 0;
  for (const auto& work : later) {
    work(then);
  }
  const std::lock_guard lock(mutex);
  outcome.losses.push_back(loss);
  outcome.evaluated.push_back(evaluated);
  add_gradients(tiny, tiny.sink, outcome);
}

Outcome run_alone(const Case& c, DType compute) {
  Outcome outcome;
  std::mutex mutex;
  run_rank(c, compute, nullptr, outcome, mutex);
  return outcome;
}

Outcome run_group(const Case& c, DType compute) {
  Outcome outcome;
  std::mutex mutex;
  ThreadWorld world(c.ranks);
  world.run([&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(60));
    DeviceContext context(Device::cpu(), 1, comm.memory());
    TensorRanks group(comm, context);
    run_rank(c, compute, &group, outcome, mutex);
  });
  return outcome;
}

// Returns the largest difference over the largest element.
double relative_difference(const std::vector<float>& x, const std::vector<float>& y) {
  double difference = 0;
  double size = 1e-30;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(x[i]) - y[i]));
    size = std::max(size, std::abs(static_cast<double>(x[i])));
  }
  return difference / size;
}

class TensorRanksTest : public testing::TestWithParam<Case> {};

TEST_P(TensorRanksTest, TogetherComputeWhatOneComputes) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const double tolerance = compute == DType::f32 ? 1e-5 : 0.06;
    const Outcome alone = run_alone(GetParam(), compute);
    const Outcome group = run_group(GetParam(), compute);
    EXPECT_TRUE(group.copies_agree);
    for (int rank = 0; rank < GetParam().ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_EQ(group.losses[r], group.losses[0]);
      EXPECT_NEAR(group.losses[r] / alone.losses[0], 1, tolerance / 4);
      EXPECT_NEAR(group.evaluated[r] / alone.evaluated[0], 1, tolerance / 4);
    }
    ASSERT_EQ(group.gradients.size(), alone.gradients.size());
    for (const auto& [name, gradient] : alone.gradients) {
      const auto together = group.gradients.find(name);
      ASSERT_NE(together, group.gradients.end()) << name;
      EXPECT_LT(relative_difference(gradient, together->second), tolerance) << name;
      for (const int holders : group.holders.at(name)) {
        ASSERT_GE(holders, 1) << name;
      }
    }
    const Outcome again = run_group(GetParam(), compute);
    EXPECT_EQ(again.losses, group.losses);
    EXPECT_EQ(again.gradients, group.gradients);
  }
}

ModelConfig gpt2(double dropout) {
  ModelConfig c = tiny_gpt2();
  c.hidden = 24;
  c.heads = 4;
  c.kv_heads = 0;
  c.head_dim = 0;
  c.dropout = dropout;
  c.complete();
  return c;
}

ModelConfig llama(std::int64_t heads, std::int64_t kv_heads, bool tied) {
  ModelConfig c = tiny_llama();
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.tie_embeddings = tied;
  c.complete();
  return c;
}

INSTANTIATE_TEST_SUITE_P(
    Models, TensorRanksTest,
    testing::Values(
        Case{"gpt2", gpt2(0)}, Case{"gpt2_4", gpt2(0), 4},
        Case{"gpt2_dropout_full", gpt2(0.2), 2, {Recompute::Kind::full, 1}},
        Case{"gpt2_later", gpt2(0), 2, {Recompute::Kind::selective, 1}, true},
        Case{"llama", llama(4, 2, false)}, Case{"llama_copies", llama(4, 2, true), 4},
        Case{"llama_copies_later", llama(4, 1, false), 4, {}, true},
        Case{"llama_odd", llama(3, 3, false), 3}, Case{"gpt2_rows", gpt2(0.2), 2, {}, false, true},
        Case{"gpt2_rows_4_full", gpt2(0.2), 4, {Recompute::Kind::full, 1}, false, true},
        Case{
            "gpt2_rows_selective_later", gpt2(0.2), 2, {Recompute::Kind::selective, 1}, true, true},
        Case{"llama_rows_copies", llama(4, 2, true), 4, {}, false, true},
        Case{"llama_rows_odd", llama(3, 3, false), 3, {}, true, true}),
    [](const auto& named) { return named.param.name; });

// Exchanged says what a rank exchanged, and how many weight gradients it began to compute
// meanwhile.
struct Exchanged {
  bool gathers = false;
  int begun_before = 0;
  int begun_meanwhile = 0;
};

class WatchedRanks : public TensorRanks {
 public:
  using TensorRanks::TensorRanks;
  Exchange start_sum(View data) override {
    const Exchange exchange = TensorRanks::start_sum(data);
    return data.count < smallest ? exchange : note(false, exchange);
  }
  Exchange start_scatter_sum(View data) override {
    return note(false, TensorRanks::start_scatter_sum(data));
  }
  Exchange start_gather(View data) override { return note(true, TensorRanks::start_gather(data)); }
  void finish(Exchange exchange) override {
    TensorRanks::finish(exchange);
    for (auto at = open_.begin(); at != open_.end() && at->first <= exchange;) {
      ended.push_back({at->second.gathers, 0, begun - at->second.begun_before});
      at = open_.erase(at);
    }
  }

  std::int64_t smallest = 0;  // smaller sums, of norms' gradients, are not noted
  int begun = 0;
  std::vector<Exchanged> ended;  // in the order of their starts

 private:
  Exchange note(bool gathers, Exchange exchange) {
    open_[exchange] = {gathers, begun, 0};
    return exchange;
  }
  std::map<Exchange, Exchanged> open_;
};

// Counts the products of weight gradients, which ask for a matrix' gradient when they start.
class CountingSink : public GradientSink {
 public:
  CountingSink(GradientSink& sink, const ParameterStore& store, WatchedRanks& ranks)
      : sink_(sink), store_(store), ranks_(ranks) {}
  View gradient(ParameterId first, int count) override {
    ranks_.begun += store_[first].place.whole.rank() == 2 ? 1 : 0;
    return sink_.gradient(first, count);
  }
  void ready(ParameterId id) override { sink_.ready(id); }

 private:
  GradientSink& sink_;
  const ParameterStore& store_;
  WatchedRanks& ranks_;
};

std::vector<Exchanged> exchanges_of_backward(const ModelConfig& config, bool sequence_parallel) {
  std::vector<Exchanged> result;
  ThreadWorld world(2);
  world.run([&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(60));
    DeviceContext context(Device::cpu(), 1, comm.memory());
    WatchedRanks group(comm, context);
    ModelSlice slice = ModelSlice::whole(config);
    slice.tensor_rank = comm.rank();
    slice.tensor_ranks = comm.size();
    TinyModel tiny(config, slice, DType::f32, kernels_for(Device::cpu()));
    CountingSink sink(tiny.sink, tiny.store, group);
    tiny.run.group = &group;
    group.smallest = 2 * config.hidden;
    tiny.run.sequence_parallel = sequence_parallel;
    tiny.run.training = true;
    tiny.run.gradients = &sink;
    const Tokens tokens(2, 12, config.vocab, 1);
    Saved saved;
    tiny.model.forward(tokens.micro_batch, {}, saved, tiny.run);
    group.ended.clear();
    tiny.model.backward(tokens.micro_batch, {}, 1, saved, tiny.run);
    if (comm.rank() == 0) {
      result = group.ended;
    }
  });
  return result;
}

// Backward gathers the head's input, the statistics of its logits, and then rows of the streams and
// of their gradients. In between it sums rows.
TEST(TensorRanksOverlap, RowsTravelWhileGradientsOfWeightsAreComputed) {
  for (const ModelConfig& config : {gpt2(0), llama(4, 2, false)}) {
    const std::vector<Exchanged> all = exchanges_of_backward(config, true);
    const auto head =
        std::find_if(all.begin(), all.end(), [](const Exchanged& e) { return !e.gathers; });
    ASSERT_NE(head, all.end());
    EXPECT_GE(head->begun_meanwhile, 1) << "the head's sum";
    // The gradient that leaves the head is gathered when all the head's products are done.
    ASSERT_TRUE((head + 1)->gathers);
    int sums = 1;
    int gathers = 0;
    for (auto e = head + 2; e != all.end(); ++e) {
      EXPECT_GE(e->begun_meanwhile, 1) << "exchange " << e - all.begin();
      (e->gathers ? gathers : sums) += 1;
    }
    const int branches = 2 * static_cast<int>(config.layers);
    EXPECT_EQ(sums, 1 + branches);
    EXPECT_EQ(gathers, 2 * branches);  // two per branch, one for the embedding
  }
}

TEST(TensorRanksOverlap, SumsTravelWhileGradientsOfWeightsAreComputed) {
  for (const ModelConfig& config : {gpt2(0), llama(4, 2, false)}) {
    int sums = 0;
    for (const Exchanged& e : exchanges_of_backward(config, false)) {
      if (!e.gathers) {
        EXPECT_GE(e.begun_meanwhile, 1) << "sum " << sums;
        ++sums;
      }
    }
    EXPECT_EQ(sums, 1 + 2 * static_cast<int>(config.layers));
  }
}

TEST(TensorShare, RefusesHeadsThatDoNotDivide) {
  const ModelConfig config = llama(6, 2, false);
  EXPECT_NE(message_of<ConfigError>([&] {
              tensor_share(config, 0, 4);
            }).find("heads 6 is not a multiple of parallel.tp 4"),
            std::string::npos);
  const std::string text = message_of<ConfigError>([&] { tensor_share(config, 0, 3); });
  EXPECT_NE(text.find("kv_heads 2"), std::string::npos);
  EXPECT_NE(text.find("1, 2, 6"), std::string::npos);
}

}  // namespace
}  // namespace trireme
