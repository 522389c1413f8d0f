// Trains a few steps under a plan, on any communicator: two stores with every kind of parameter,
// gradients that depend on the weights, AdamW with clipping. The result must have the same bits for
// every level of ZeRO and every number of ranks.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/optim/gradient_norm.h"
#include "src/parallel/zero_state.h"

namespace trireme {

struct ZeroPlan {
  int level = 0;
  std::int64_t micro_batches = 8;
  Reproducibility reproducibility = Reproducibility::elastic;
  std::int64_t bucket_bytes = 20000;
  DType compute = DType::f32;
  bool borders = false;
  int steps = 3;
};

struct ZeroOutcome {
  std::vector<double> norms;        // of each step
  std::vector<std::int32_t> state;  // bits of masters, m and v of all that is primary
  friend bool operator==(const ZeroOutcome&, const ZeroOutcome&) = default;
};

// ZeroChunk is one store, like that of a pipeline's chunk. Layers are ranges of its parameters.
struct ZeroChunk {
  ParameterStore store;
  std::vector<ParameterId> layers;  // the first parameter of each layer, then the end of the last
  std::unique_ptr<ZeroState> state;

  struct Entry {
    std::int64_t elements;
    bool decays = false;
    bool joined = false;
    bool trained = true;
    bool primary = true;
  };
  ZeroChunk(DeviceContext& context, DType compute, const std::string& name,
            const std::vector<Entry>& entries, std::vector<ParameterId> begins)
      : store(context, compute), layers(std::move(begins)) {
    for (const Entry& entry : entries) {
      Parameter parameter;
      parameter.name = fmt::format("{}{}", name, store.count());
      parameter.place = Place::all({entry.elements});
      parameter.place.primary = entry.primary;
      parameter.initializer = {entry.decays ? Initializer::Kind::normal : Initializer::Kind::ones,
                               0.5F};
      parameter.decays = entry.decays;
      parameter.joined = entry.joined;
      parameter.trained = entry.trained;
      store.add(std::move(parameter));
    }
    layers.push_back(store.count());
  }
};

class ZeroRun {
 public:
  ZeroRun(Communicator& dp, const ZeroPlan& plan) : dp_(dp), plan_(plan) {
    chunks_.push_back(
        std::make_unique<ZeroChunk>(context_, plan.compute, "p",
                                    std::vector<ZeroChunk::Entry>{{200, true, false, false},
                                                                  {5000, true},
                                                                  {300},
                                                                  {6000, true},
                                                                  {4096, false, true},
                                                                  {1000, true, true, true, false},
                                                                  {77},
                                                                  {9000, true}},
                                    std::vector<ParameterId>{0, 2, 6}));
    chunks_.push_back(std::make_unique<ZeroChunk>(
        context_, plan.compute, "q",
        std::vector<ZeroChunk::Entry>{{5000, true}, {1}, {8192, true}, {640}},
        std::vector<ParameterId>{0, 1, 3}));
    for (const auto& chunk : chunks_) {
      chunk->state = std::make_unique<ZeroState>(
          chunk->store, ZeroTools{dp, context_},
          ZeroState::Options{.level = plan.level,
                             .reproducibility = plan.reproducibility,
                             .bucket_bytes = plan.bucket_bytes,
                             .borders = plan.borders ? chunk->layers : std::vector<ParameterId>{},
                             .optimizer = {}});
      chunk->state->initialize(7);
    }
  }

  ZeroOutcome run() {
    ZeroOutcome outcome;
    for (int step = 0; step < plan_.steps; ++step) {
      outcome.norms.push_back(one_step(step));
    }
    for (const auto& chunk : chunks_) {
      expect_working_copies(*chunk);
      append_state(*chunk, outcome.state);
    }
    return outcome;
  }

 private:
  double one_step(int step) {
    for (const auto& chunk : chunks_) {
      chunk->state->reducer().begin_step(plan_.micro_batches);
    }
    for (const std::int64_t m : chunks_.front()->state->reducer().micro_batches()) {
      for (const auto& chunk : chunks_) {
        forward(*chunk);
      }
      for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
        backward(**chunk, step, m);
      }
    }
    SquareSums sums(context_);
    for (const auto& chunk : chunks_) {
      chunk->state->reducer().finish_step();
      chunk->state->add_squares(sums);
      // This prefetch comes too early: nobody may compute with what it gathers before the update.
      chunk->state->parameters().prefetch(0, chunk->layers[1]);
    }
    const ExactSum squares = sums.read();
    const bool sharded = chunks_.front()->state->layout().level() > 0;
    const double norm = sharded ? gradient_norm(squares, dp_) : std::sqrt(squares.value());
    const auto clip = static_cast<float>(clip_factor(norm, norm / 2));
    for (const auto& chunk : chunks_) {
      chunk->state->start_update({step + 1, 0.01F, clip});
    }
    return norm;
  }

  // Reads every layer while the next one is being gathered.
  void forward(ZeroChunk& chunk) {
    ZeroParameters& residence = chunk.state->parameters();
    for (std::size_t layer = 0; layer + 1 < chunk.layers.size(); ++layer) {
      const ParameterId first = chunk.layers[layer];
      const ParameterId end = chunk.layers[layer + 1];
      residence.need(first, end);
      if (layer + 2 < chunk.layers.size()) {
        residence.prefetch(end, chunk.layers[layer + 2]);
      }
      for (ParameterId id = first; id < end; ++id) {
        EXPECT_TRUE(std::isfinite(element(chunk.store.compute(id), 0)));
      }
      residence.release(first, end);
    }
  }

  void backward(ZeroChunk& chunk, int step, std::int64_t m) {
    ZeroParameters& residence = chunk.state->parameters();
    GradientSink& sink = chunk.state->reducer().open(m);
    for (std::size_t layer = chunk.layers.size() - 1; layer-- > 0;) {
      const ParameterId first = chunk.layers[layer];
      residence.need(first, chunk.layers[layer + 1]);
      for (ParameterId id = chunk.layers[layer + 1] - 1; id >= first; --id) {
        if (chunk.store[id].trained) {
          write_gradient(chunk.store, id, step, m, sink.gradient(id));
          sink.ready(id);
        }
      }
      residence.release(first, chunk.layers[layer + 1]);
    }
  }

  static float element(const View& working_copies, std::int64_t i) {
    return working_copies.dtype == DType::f32 ? as<float>(working_copies)[i]
                                              : to_float(as<bf16>(working_copies)[i]);
  }

  static void write_gradient(const ParameterStore& store, ParameterId id, int step, std::int64_t m,
                             const View& gradient) {
    const View working_copies = store.compute(id);
    const std::uint64_t key = mix64(static_cast<std::uint64_t>(step * 1000 + m)) +
                              mix64(static_cast<std::uint64_t>(id) + store[id].name[0]);
    for (std::int64_t i = 0; i < gradient.count; ++i) {
      const std::uint64_t bits = mix64(key + static_cast<std::uint64_t>(i));
      as<float>(gradient)[i] = static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F +
                               element(working_copies, i) * static_cast<float>(bits & 15);
    }
  }

  // Checks that every rank's working copies are the masters, rounded, whichever rank holds these.
  void expect_working_copies(ZeroChunk& chunk) {
    const ParameterStore& store = chunk.store;
    std::vector<float> masters(static_cast<std::size_t>(store.flat_elements()), 0.0F);
    std::vector<std::int32_t> held(masters.size(), 0);
    for (const StatePiece& piece : chunk.state->pieces_to_load()) {
      const auto at = store[piece.id].offset + piece.first;
      std::copy_n(as<float>(piece.value), piece.count(), masters.begin() + at);
      std::fill_n(held.begin() + at, piece.count(), 1);
    }
    chunk.state->parameters().need(0, store.count());
    std::int64_t different = 0;
    for (ParameterId id = 0; id < store.count(); ++id) {
      for (std::int64_t i = 0; i < store[id].elements(); ++i) {
        const auto at = static_cast<std::size_t>(store[id].offset + i);
        const float expected =
            store.compute_dtype() == DType::f32 ? masters[at] : to_float(to_bf16(masters[at]));
        different += held[at] != 0 && element(store.compute(id), i) != expected ? 1 : 0;
        masters[at] = element(store.compute(id), i);
      }
    }
    EXPECT_EQ(different, 0);
    expect_same_everywhere(masters);
    chunk.state->parameters().release(0, store.count());
  }

  void expect_same_everywhere(const std::vector<float>& values) {
    std::vector<float> least = values;
    std::vector<float> most = values;
    const auto count = static_cast<std::int64_t>(values.size());
    dp_.all_reduce({least.data(), count, DType::f32}, ReduceOp::min).wait();
    dp_.all_reduce({most.data(), count, DType::f32}, ReduceOp::max).wait();
    EXPECT_TRUE(least == most) << "ranks compute with different weights";
  }

  // Appends what the ranks would save, which together is each primary element once.
  void append_state(ZeroChunk& chunk, std::vector<std::int32_t>& state) {
    const ParameterStore& store = chunk.store;
    const auto n = static_cast<std::size_t>(store.flat_elements());
    std::vector<std::int32_t> bits(4 * n, 0);
    for (const StatePiece& piece : chunk.state->pieces_to_save()) {
      const auto at = static_cast<std::size_t>(store[piece.id].offset + piece.first);
      std::size_t part = 0;
      for (const View& view : {piece.value, piece.states.at(0), piece.states.at(1)}) {
        std::memcpy(bits.data() + part++ * n + at, view.data,
                    static_cast<std::size_t>(view.bytes()));
      }
      for (std::int64_t i = 0; i < piece.count(); ++i) {
        bits[3 * n + at + static_cast<std::size_t>(i)] += 1;
      }
    }
    dp_.all_reduce({bits.data(), static_cast<std::int64_t>(bits.size()), DType::i32}, ReduceOp::sum)
        .wait();
    for (const Parameter& parameter : store.all()) {
      const std::int32_t expected = parameter.trained && parameter.place.primary ? 1 : 0;
      for (std::int64_t i = 0; i < parameter.elements(); ++i) {
        const std::int32_t times = bits[3 * n + static_cast<std::size_t>(parameter.offset + i)];
        ASSERT_EQ(times, expected) << "savings of " << parameter.name << " " << i;
      }
    }
    state.insert(state.end(), bits.begin(), bits.begin() + 3 * static_cast<std::int64_t>(n));
  }

  Communicator& dp_;
  ZeroPlan plan_;
  DeviceContext context_{Device::cpu(), 1};
  std::vector<std::unique_ptr<ZeroChunk>> chunks_;
};

}  // namespace trireme
