#include "src/train/saving/frozen_weights.h"

#include <vector>

#include "io/checkpoint/load/load_step.h"
#include "src/base/error.h"
#include "src/train/engine/teacher.h"
#include "src/train/engine/training_state.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/host_mirror.h"

namespace trireme {
namespace {

// FrozenPart is consecutive frozen parameters [first, end) of a store.
struct FrozenPart {
  ParameterId first = 0;
  ParameterId end = 0;
  std::int64_t elements = 0;
};

std::vector<FrozenPart> frozen_parts(const ParameterStore& store, FrozenWeights which) {
  std::vector<FrozenPart> parts;
  for (ParameterId id = 0; id < store.count(); ++id) {
    const std::int64_t elements = store[id].elements();
    if (which == FrozenWeights::declared && !store[id].frozen) {
      continue;
    }
    if (parts.empty() || parts.back().end != id ||
        parts.back().elements + elements > kFrozenElementsAtOnce) {
      parts.push_back({id, id, 0});
    }
    parts.back().end = id + 1;
    parts.back().elements += elements;
  }
  return parts;
}

// Loads the parameters of a part and rounds their working copies. Returns why a weight is unusable,
// or "".
std::string load_part(const StepFolder& base, const FrozenPart& part, const ParameterStore& store) {
  DeviceContext& context = store.context();
  Pool passing(context.device());  // returns its memory to the system when it ends
  const Tensor values(passing, {part.elements}, DType::f32);
  std::vector<StatePiece> pieces;
  std::int64_t at = 0;
  for (ParameterId id = part.first; id < part.end; ++id) {
    pieces.push_back({id, 0, values.view().slice(at, store[id].elements()), {}, {}});
    at += store[id].elements();
  }
  std::vector<TensorBlock> blocks;
  add_blocks(store, pieces, blocks);
  HostMirror mirror(context);
  load_step(base.path, *base.manifest, mirror.fetch(blocks));
  mirror.store();
  std::string fault = fault_of_numbers(context, blocks, FiniteCheck::finite);
  for (const StatePiece& piece : pieces) {
    context.kernels().cast(context.stream(), store.compute(piece.id), piece.value);
  }
  context.stream().synchronize();  // before the memory of `passing` goes away
  return fault;
}

}  // namespace

std::string load_frozen_weights(const StepFolder& step, const ParameterStore& store,
                                FrozenWeights which) {
  for (const FrozenPart& part : frozen_parts(store, which)) {
    try {
      const std::string fault = load_part(step, part, store);
      if (!fault.empty()) {
        return fmt::format("{}: {}", step.path.string(), fault);
      }
    } catch (const DataError& error) {
      return error.what();
    }
  }
  return "";
}

}  // namespace trireme
