#include "src/interchange/checkpoint_weights.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/load/piece.h"
#include "io/checkpoint/workers.h"
#include "src/base/error.h"
#include "src/interchange/elements.h"
#include "src/nn/model_size.h"
#include "src/optim/optimizer.h"
#include "src/train/run/fingerprint.h"

namespace trireme {
namespace {

// Returns the block [first, first + count) of a stored tensor. data: [count], or null.
TensorBlock flat_block(const std::string& name, const Shape& shape, std::int64_t first,
                       std::int64_t count, float* data) {
  return {name, shape, Extent::flat(first, count), View{data, count, DType::f32}};
}

}  // namespace

CheckpointWeights::CheckpointWeights(StepFolder step, Weights which)
    : step_(std::move(step)),
      prefix_(which == Weights::average ? fmt::format("{}.", kAverageName) : "") {
  const Manifest& manifest = *step_.manifest;
  const std::string origin = (step_.path / kManifestName).string();
  if (which == Weights::average && !has_average(*manifest.meta.config)) {
    throw ConfigError(
        fmt::format("{} holds no moving average of the weights, because it was trained without "
                    "optimizer.ema: omit --ema",
                    step_.path.string()));
  }
  try {
    model_ = model_from_fingerprint(*manifest.meta.config);
    check_tensors();
    tensors_ = model_tensors(model_);
    std::vector<TensorBlock> blocks;
    for (const ModelTensor& tensor : tensors_) {
      blocks.push_back(
          flat_block(prefix_ + tensor.name, tensor.shape, 0, tensor.shape.elements(), nullptr));
    }
    if (const auto wrong = mismatches(manifest, blocks); !wrong.empty()) {
      throw DataError(
          fmt::format("its tensors do not match its model:\n  {}", fmt::join(wrong, "\n  ")));
    }
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", origin, error.what()));
  }
  loader_ = std::make_unique<CheckpointLoader>(self_, step_.path, manifest, ShardIo{});
}

// Called before the model is declared, which takes memory for every layer.
void CheckpointWeights::check_tensors() const {
  const std::int64_t claimed = parameter_count(model_);
  double stored = 0;
  for (const StoredTensor& tensor : step_.manifest->tensors) {
    stored += static_cast<double>(tensor.shape.elements());
  }
  if (stored < static_cast<double>(claimed)) {
    throw DataError(fmt::format("its model has {} parameters, but only {:.0f} elements are stored",
                                claimed, stored));
  }
}

void CheckpointWeights::read(const ModelTensor& tensor, std::int64_t first, std::int64_t count,
                             float* to) {
  const std::vector blocks = {flat_block(prefix_ + tensor.name, tensor.shape, first, count, to)};
  (void)loader_->load(blocks);
  if (const std::int64_t at = first_not_finite(to, count); at < count) {
    throw DataError(
        fmt::format("{}: element {} of {} is {}: the run had diverged, or the "
                    "checkpoint was changed",
                    step_.path.string(), first + at, tensor.name, to[at]));
  }
}

std::vector<float> CheckpointWeights::read(const std::string& name) {
  const auto at = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const ModelTensor& tensor) { return tensor.name == name; });
  check(at != tensors_.end(), "only tensors of the model are read");
  std::vector<float> elements(static_cast<std::size_t>(at->shape.elements()));
  read(*at, 0, std::ssize(elements), elements.data());
  return elements;
}

}  // namespace trireme
