// KeyValueCache holds the keys and values of the tokens of one decoded sequence so far. It stores
// whole rows of the packed projection [queries | keys | values], so that the product writes
// directly into it, at the price of the memory of the queries. Owned by the code that generates;
// one thread.
#pragma once

#include <vector>

#include "src/compute/device_context.h"
#include "src/nn/model_config.h"
#include "src/tensor/tensor.h"

namespace trireme {

class KeyValueCache {
 public:
  // Allocates memory for `capacity` tokens. Throws ConfigError unless it is in 1..config.context.
  KeyValueCache(DeviceContext& context, const ModelConfig& config, std::int64_t capacity,
                DType compute);

  std::int64_t capacity() const { return capacity_; }
  // Returns the number of tokens that the cache holds.
  std::int64_t length() const { return length_; }
  // Drops all tokens from `length` on.
  void truncate(std::int64_t length);

  // Returns the rows of one layer, T [capacity, qkv_width].
  View rows(std::int64_t layer) const { return layers_[static_cast<std::size_t>(layer)].view(); }
  // Called after all layers have written the rows of `tokens` new tokens.
  void advance(std::int64_t tokens) { length_ += tokens; }

 private:
  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::vector<Tensor> layers_;
};

}  // namespace trireme
