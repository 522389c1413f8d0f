// What goes into a checkpoint and comes out of it: logical tensors, by name, in global shape. A
// rank gives or asks for blocks of them; nothing here knows what the tensors mean. By convention
// parameters stand under their own names, the optimizer's state under optimizer.<what>.<parameter>.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/device/device.h"
#include "src/tensor/extent.h"

namespace trireme {

// A block to be saved. Over all ranks the blocks of a name have to tile its tensor exactly once.
struct TensorBlock {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // of the whole tensor
  Extent extent;
  ConstView data;  // [extent.elements()], on the CPU
};

// A block to be loaded; any cut of the tensor will do.
struct BlockRequest {
  std::string name;
  Shape shape;  // of the whole tensor
  Extent extent;
  View data;  // [extent.elements()] of the tensor's type, on the CPU
};

struct CheckpointMeta {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // consumed so far
  // Fingerprints are objects of fields, so that a difference can be told field by field.
  nlohmann::json config = nlohmann::json::object();
  nlohmann::json numerics = nlohmann::json::object();
  nlohmann::json extra = nlohmann::json::object();
};

// Told each point that a save passes, so that tests can stop the program there. Called from the
// caller's thread and from background threads.
using Observer = std::function<void(std::string_view point)>;

inline void tell(const Observer& observer, std::string_view point) {
  if (observer) {
    observer(point);
  }
}

}  // namespace trireme
