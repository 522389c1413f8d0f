// KeyValueCache: the keys and values of the tokens that a decoded sequence holds so far. One
// sequence. It keeps whole rows of the packed projection [queries | keys | values], so that the
// product writes straight into it; the price is the space of the queries. Owned by whoever
// generates.
#pragma once

#include <vector>

#include "src/compute/device_context.h"
#include "src/nn/model_config.h"
#include "src/tensor/tensor.h"

namespace trireme {

class KeyValueCache {
 public:
  // Room for `capacity` tokens (at most config.context).
  KeyValueCache(DeviceContext& context, const ModelConfig& config, std::int64_t capacity,
                DType compute);

  std::int64_t capacity() const { return capacity_; }
  // Tokens held.
  std::int64_t length() const { return length_; }
  // Forgets all tokens from `length` on.
  void truncate(std::int64_t length);

  // T [capacity, qkv_width] of one layer.
  View rows(std::int64_t layer) const { return layers_[static_cast<std::size_t>(layer)].view(); }
  // After all layers have written their rows.
  void advance(std::int64_t tokens) { length_ += tokens; }

 private:
  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::vector<Tensor> layers_;
};

}  // namespace trireme
