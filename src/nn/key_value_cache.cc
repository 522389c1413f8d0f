#include "src/nn/key_value_cache.h"

#include "src/base/error.h"

namespace trireme {

KeyValueCache::KeyValueCache(DeviceContext& context, const ModelConfig& config,
                             std::int64_t capacity, DType compute)
    : capacity_(capacity) {
  if (capacity < 1 || capacity > config.context) {
    throw ConfigError(
        fmt::format("{} tokens do not fit: the model's context is {} tokens; shorten the prompt or "
                    "request fewer new tokens",
                    capacity, config.context));
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    layers_.emplace_back(context.activations(), Shape{capacity, config.qkv_width()}, compute);
  }
}

void KeyValueCache::truncate(std::int64_t length) {
  check(length >= 0 && length <= length_, "a cache is truncated to tokens that it holds");
  length_ = length;
}

}  // namespace trireme
