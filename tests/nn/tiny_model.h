// TinyModel and its neighbours are shared by the tests of models: a model with everything it needs
// to run, and numbers made by an integer hash that tests/golden/make_golden.py repeats.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/compute/kernel_choice.h"
#include "src/nn/master_weights.h"
#include "src/nn/model.h"

namespace trireme {

inline std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t h = 0xCBF29CE484222325;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return h;
}

// Matrices lie in [-1/4, 1/4), biases in [-1/16, 1/16), weights of norms in [7/8, 9/8).
inline float hashed_weight(const Parameter& parameter, std::int64_t element) {
  const std::uint64_t bits = mix64(fnv1a(parameter.name) + static_cast<std::uint64_t>(element));
  const double u = static_cast<double>(bits >> 40) * 0x1p-23 - 1;
  if (parameter.place.whole.rank() == 2) {
    return static_cast<float>(u / 4);
  }
  return static_cast<float>(parameter.name.ends_with(".bias") ? u / 16 : 1 + u / 8);
}

// ids and targets [B,T], cut from hashed rows of T + 1 tokens.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  MicroBatch micro_batch;

  Tokens(std::int64_t batch, std::int64_t time, std::int64_t vocab, std::int64_t step) {
    const auto token = [&](std::int64_t i) {
      return static_cast<std::int32_t>(mix64(static_cast<std::uint64_t>(1000003 * step + i)) %
                                       static_cast<std::uint64_t>(vocab));
    };
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < time; ++t) {
        ids.push_back(token(b * (time + 1) + t));
        targets.push_back(token(b * (time + 1) + t + 1));
      }
    }
    micro_batch = {batch, time, ConstView(ids.data(), batch * time, DType::i32),
                   ConstView(targets.data(), batch * time, DType::i32)};
  }
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;
};

// Computer is what a model computes with: a table of the CPU, or the first GPU, named "cuda".
struct Computer {
  Computer(const Kernels& kernels) : table(&kernels) {}
  Computer(const std::string& name) : table(name == "cuda" ? nullptr : &kernels_named(name)) {}
  DeviceContext context(int threads) const {
    return table == nullptr ? DeviceContext({DeviceKind::cuda, 0}, threads)
                            : DeviceContext(*table, threads);
  }
  const Kernels* table;  // null for the GPU
};

// Owns a model with hashed weights, its gradients and a Run.
struct TinyModel {
  DeviceContext context;
  ParameterStore store;
  Model model;
  std::unique_ptr<MasterWeights> masters;
  Tensor gradients;
  FlatGradients sink;
  Tensor loss;  // of the last backward pass or evaluation of a slice
  Run run;

  TinyModel(const ModelConfig& config, DType compute, const Computer& computer, int threads = 1)
      : TinyModel(config, ModelSlice::whole(config), compute, computer, threads) {}
  TinyModel(const ModelConfig& config, const ModelSlice& slice, DType compute,
            const Computer& computer, int threads = 1)
      : context(computer.context(threads)),
        store(context, compute),
        model(config, slice, store),
        gradients(context.state(), {store.flat_elements()}, DType::f32),
        sink(store, gradients.view()),
        loss(context.state(), {1}, DType::f64),
        run{context, store} {
    run.loss = loss.view();
    run.gradients = &sink;
    store.allocate();
    masters = std::make_unique<MasterWeights>(store);
    for (ParameterId id = 0; id < store.count(); ++id) {
      context.write<float>(masters->value(id), [&](float* x) {
        for (const HeldRun& part : runs_of(store[id].place, 0, store[id].elements())) {
          for (std::int64_t i = 0; i < part.elements; ++i) {
            x[part.held_first + i] = hashed_weight(store[id], part.whole_first + i);
          }
        }
      });
    }
    masters->refresh_working_copies();
    // A huge value reveals each gradient that is not overwritten. Gaps are 0.
    context.kernels().fill(context.stream(), gradients.view(), 0);
    for (const Parameter& each : store.all()) {
      context.kernels().fill(context.stream(), gradients.view().slice(each.offset, each.elements()),
                             1e30F);
    }
  }
  TinyModel(const TinyModel&) = delete;
  TinyModel& operator=(const TinyModel&) = delete;
};

// Returns the names of the kernel tables that run on this machine.
inline std::vector<std::string> kernel_tables() {
  std::vector<std::string> names;
  for (const char* name : {"reference", "baseline", "avx2", "avx512"}) {
    try {
      names.emplace_back(kernels_named(name).name);
    } catch (const ConfigError&) {
      continue;
    }
  }
  return names;
}

// All sizes are odd or unequal, so that mixing them up shows.
inline ModelConfig tiny_gpt2() {
  ModelConfig c;
  c.family = Family::gpt2;
  c.layers = 2;
  c.hidden = 15;
  c.heads = 3;
  c.vocab = 37;
  c.context = 13;
  c.ffn = 31;
  c.complete();
  return c;
}
// As in Jais: ALiBi for a number of heads that is no power of two, SwiGLU, and all scales.
inline ModelConfig tiny_jais() {
  ModelConfig c = tiny_gpt2();
  c.alibi = true;
  c.swiglu = true;
  c.embedding_scale = 1.75;
  c.logit_scale = 0.5;
  c.attention_scale = 0.2;
  return c;
}
inline ModelConfig tiny_llama() {
  ModelConfig c;
  c.family = Family::llama;
  c.layers = 2;
  c.hidden = 15;
  c.heads = 3;
  c.kv_heads = 1;
  c.head_dim = 6;
  c.vocab = 37;
  c.context = 13;
  c.ffn = 11;
  c.tie_embeddings = false;
  c.complete();
  return c;
}

// Returns the model with adapters for these products.
inline ModelConfig with_adapters(ModelConfig config, std::vector<std::string> products) {
  config.lora = {std::move(products), 3, 6};
  config.complete();
  return config;
}

}  // namespace trireme
