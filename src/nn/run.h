// What a forward or backward pass runs with: passed down, never global.
#pragma once

#include <functional>

#include "src/kernels/kernels.h"
#include "src/nn/parameter.h"

namespace trireme {

class KeyValueCache;

struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
};

struct Run {
  const Kernels& kernels;
  Stream& stream;
  Pool& pool;
  ParameterStore& parameters;
  // Training only. Dropout is off without it.
  bool training = false;
  DropoutKey dropout{};
  std::int64_t first_sample = 0;  // of this micro-batch, within the step's global batch
  // Called by backward when a parameter's gradient is final, in backward order. May be empty.
  std::function<void(ParameterId)> gradient_ready{};
  // Decoding only: the tokens before this pass.
  KeyValueCache* cache = nullptr;
};

// One micro-batch of token sequences. Pointers are borrowed for the call.
struct MicroBatch {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  ConstView ids;      // i32 [B,T]
  ConstView targets;  // i32 [B,T]: the token that follows each id
};

}  // namespace trireme
