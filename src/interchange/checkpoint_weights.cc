#include "src/interchange/checkpoint_weights.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/load/piece.h"
#include "io/checkpoint/workers.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/interchange/elements.h"
#include "src/nn/model_size.h"
#include "src/optim/optimizer.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/stored_count.h"

namespace trireme {
namespace {

// Returns the block [first, first + count) of a stored tensor. data: [count], or null.
TensorBlock flat_block(const std::string& name, const Shape& shape, std::int64_t first,
                       std::int64_t count, float* data) {
  return {name, shape, Extent::flat(first, count), View{data, count, DType::f32}};
}

}  // namespace

CheckpointWeights::CheckpointWeights(StepFolder step, Weights which, std::optional<StepFolder> base)
    : step_(std::move(step)),
      prefix_(which == Weights::average ? fmt::format("{}.", kAverageName) : "") {
  const Manifest& manifest = *step_.manifest;
  if (which == Weights::average && !has_average(*manifest.meta.config)) {
    throw ConfigError(
        fmt::format("{} holds no moving average of the weights, because it was trained without "
                    "optimizer.ema: omit --ema",
                    step_.path.string()));
  }
  check(needs_base(manifest) == base.has_value(), "a step is read together with its base");
  read_config(which);
  if (base) {
    base_ = std::make_unique<CheckpointWeights>(std::move(*base), Weights::latest);
    tensors_ = model_tensors(model_);
    if (base_->tensors() != tensors_) {
      throw DataError(fmt::format("{} is of another model than what {} was trained beside",
                                  base_->step().path.string(), step_.path.string()));
    }
  }
  if (adapters_ != nullptr) {
    return;
  }
  loader_ = std::make_unique<CheckpointLoader>(self_, step_.path, manifest, ShardIo{});
}

// Reads what the manifest says about the model.
void CheckpointWeights::read_config(Weights which) {
  const Manifest& manifest = *step_.manifest;
  const std::filesystem::path file = step_.path / kManifestName;
  try {
    model_ = model_from_fingerprint(*manifest.meta.config);
    (void)trained_precision(*manifest.meta.config);
    check_tensors();
    check_stored_weights(manifest, model_);
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
  if (has_adapters(manifest)) {
    adapters_ = std::make_unique<AdapterWeights>(step_, model_, which);
    model_.lora = {};
    return;
  }
  frozen_ = std::exchange(model_.frozen, {});
  tensors_ = model_tensors(model_);
  std::vector<TensorBlock> blocks;
  for (const ModelTensor& tensor : tensors_) {
    if (!frozen_.holds(tensor.name)) {
      blocks.push_back(
          flat_block(prefix_ + tensor.name, tensor.shape, 0, tensor.shape.elements(), nullptr));
    }
  }
  check_fits(manifest, blocks, file);
}

// Called before the model is declared, which takes memory for every layer.
void CheckpointWeights::check_tensors() const {
  const std::int64_t claimed = trained_parameter_count(model_);
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
  if (adapters_ != nullptr || frozen_.holds(tensor.name)) {
    base_->read(tensor, first, count, to);
    if (adapters_ != nullptr) {
      adapters_->add_to(tensor, first, count, to);
    }
    return;
  }
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

std::optional<StepFolder> open_base(const StepFolder& step, const KeyOptions& keys) {
  if (!needs_base(*step.manifest)) {
    return std::nullopt;
  }
  StepFolder base = recorded_base(step);
  unlock(*base.manifest, base.path, keys);
  return base;
}

}  // namespace trireme
