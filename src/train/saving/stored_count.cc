#include "src/train/saving/stored_count.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/nn/model_size.h"
#include "src/nn/model_tensors.h"
#include "src/optim/optimizer.h"

namespace trireme {
namespace {

constexpr std::string_view kStatePrefix = "optimizer.";

// Returns the name of the weight that a stored tensor is, or is the average of; "" for other state.
std::string_view weight_of(std::string_view stored) {
  if (stored.starts_with(kAverageName)) {
    return stored.substr(std::min(kAverageName.size() + 1, stored.size()));
  }
  return stored.starts_with(kStatePrefix) ? "" : stored;
}

}  // namespace

void check_stored_count(const Manifest& manifest, const ModelConfig& config) {
  const std::int64_t claimed = trained_parameter_count(config);
  std::int64_t stored = 0;
  for (const StoredTensor& tensor : manifest.tensors) {
    stored += tensor.name.starts_with(kStatePrefix) ? 0 : tensor.shape.elements();
    if (stored >= claimed) {
      return;
    }
  }
  throw DataError(
      fmt::format("its model has {} parameters, but only {} are stored", claimed, stored));
}

void check_stored_weights(const Manifest& manifest, const ModelConfig& config) {
  constexpr std::size_t kMostNamed = 3;
  std::set<std::string, std::less<>> known;
  for (const ModelTensor& tensor : model_tensors(config)) {
    if (!tensor.is_frozen) {
      known.insert(tensor.name);
    }
  }
  std::vector<std::string> unused;
  for (const StoredTensor& tensor : manifest.tensors) {
    const std::string_view weight = weight_of(tensor.name);
    if (!weight.empty() && !known.contains(weight)) {
      unused.push_back(tensor.name);
    }
  }
  if (unused.empty()) {
    return;
  }
  const std::size_t named = std::min(kMostNamed, unused.size());
  throw DataError(fmt::format(
      "its configuration describes a model without {} of the stored tensors: {}{}; it is not the "
      "configuration that they were trained with",
      unused.size(),
      fmt::join(unused.begin(), unused.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      unused.size() > named ? ", ..." : ""));
}

}  // namespace trireme
