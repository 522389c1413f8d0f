#include "src/train/saving/stored_count.h"

#include "src/base/error.h"
#include "src/nn/model_size.h"

namespace trireme {

void check_stored_count(const Manifest& manifest, const ModelConfig& config) {
  const std::int64_t claimed = trained_parameter_count(config);
  std::int64_t stored = 0;
  for (const StoredTensor& tensor : manifest.tensors) {
    stored += tensor.name.starts_with("optimizer.") ? 0 : tensor.shape.elements();
    if (stored >= claimed) {
      return;
    }
  }
  throw DataError(
      fmt::format("its model has {} parameters, but only {} are stored", claimed, stored));
}

}  // namespace trireme
