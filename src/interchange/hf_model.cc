#include "src/interchange/hf_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/ranges.h>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/interchange/hf_jais.h"
#include "src/nn/model_size.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kConfigName = "config.json";
constexpr std::string_view kPrefix = "transformer.";
constexpr const char* kHead = "lm_head.weight";
constexpr std::int64_t kMostConfigBytes = 16 << 20;
constexpr std::int64_t kCompared = std::int64_t{1} << 20;  // elements compared at a time

HfConfig read_config(const fs::path& path) {
  if (!fs::exists(path)) {
    throw NotFound(fmt::format("{} is missing: it says what the tensors mean", path.string()));
  }
  try {
    return parse_hf_config(read_file(path, kMostConfigBytes));
  } catch (const DataError& error) {
    throw data_error_in(path.string(), error);
  }
}

// Returns whether a tensor is no weight: a causal mask, or frequencies that follow from the
// configuration.
bool is_derived(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

fs::path folder_of(const fs::path& source) {
  if (!fs::exists(source)) {
    throw NotFound(fmt::format("{} does not exist", source.string()));
  }
  return fs::is_directory(source) ? source : source.parent_path();
}

}  // namespace

HfModel::HfModel(const fs::path& source)
    : folder_(folder_of(source)), config_(read_config(folder_ / kConfigName)), files_(source) {
  check_count();
  tensors_ = model_tensors(config_.model);
  for (const ModelTensor& tensor : tensors_) {
    find_tensor(tensor);
  }
  if (config_.model.tie_embeddings) {
    check_tied(config_.model.family == Family::gpt2 ? "transformer.wte.weight"
                                                    : "model.embed_tokens.weight");
  }
  check_rest();
  find_dtype();
}

// Called before the model is declared, which takes memory for every layer.
void HfModel::check_count() {
  const std::int64_t claimed = parameter_count(config_.model);
  double stored = 0;  // hostile shapes may be large
  for (const auto& [name, tensor] : files_.tensors()) {
    stored += static_cast<double>(tensor.elements());
  }
  if (stored >= static_cast<double>(claimed)) {
    return;
  }
  const std::string summary =
      fmt::format("{} describes a model of {} parameters, but the files hold only {:.0f} elements",
                  kConfigName, claimed, stored);
  // Each layer has tensors, so that one is missing if there are as many layers as tensors.
  ModelConfig shorter = config_.model;
  shorter.layers = std::min(shorter.layers, std::ssize(files_.tensors()) + 1);
  try {
    for (const ModelTensor& tensor : model_tensors(shorter)) {
      find_tensor(tensor);
    }
  } catch (const DataError& error) {
    throw DataError(fmt::format("{} ({})", error.what(), summary));
  }
  throw DataError(fmt::format("{}: {}", folder_.string(), summary));
}

std::string HfModel::where(const std::string& stored) const {
  const HfTensor* const tensor = files_.find(stored);
  return fmt::format("{}: tensor {}", files_.path_of(*tensor).string(), printable(stored));
}

void HfModel::find_tensor(const ModelTensor& tensor) {
  std::string stored = tensor.name;
  if (files_.find(stored) == nullptr && stored.starts_with(kPrefix)) {
    stored = stored.substr(kPrefix.size());
  }
  if (files_.find(stored) == nullptr) {
    throw DataError(fmt::format("{}: the tensor {} is missing: was it downloaded completely?",
                                folder_.string(), tensor.name));
  }
  check_shape(tensor, stored);
  stored_[tensor.name] = std::move(stored);
}

void HfModel::check_shape(const ModelTensor& tensor, const std::string& stored) {
  const std::vector<std::int64_t>& shape = files_.find(stored)->shape;
  const std::vector<std::int64_t> wanted = tensor.shape.to_vector();
  const bool is_vocabulary = wanted == std::vector{config_.model.vocab, config_.model.hidden} &&
                             (stored == kHead || stored.ends_with("wte.weight") ||
                              stored.ends_with("embed_tokens.weight"));
  if (is_vocabulary && shape.size() == 2 && shape[1] == wanted[1] && shape[0] > wanted[0]) {
    padding_rows_ = std::max(padding_rows_, shape[0] - wanted[0]);
  } else if (shape != wanted) {
    throw DataError(fmt::format("{} has the shape [{}], but {} asks for {}", where(stored),
                                fmt::join(shape, ", "), kConfigName, tensor.shape.to_string()));
  }
}

// The configuration says that both are one matrix. What transformers would do with two different
// ones depends on its version.
void HfModel::check_tied(std::string_view embedding) {
  if (files_.find(kHead) == nullptr) {
    return;
  }
  const ModelTensor& tensor = tensor_of(std::string(embedding));
  check_shape(tensor, kHead);
  std::vector<float> own(static_cast<std::size_t>(kCompared));
  std::vector<float> head(own.size());
  const std::int64_t elements = tensor.shape.elements();
  for (std::int64_t first = 0; first < elements; first += kCompared) {
    const std::int64_t count = std::min(kCompared, elements - first);
    read(tensor.name, first, count, own.data());
    files_.read(kHead, first, count, head.data());
    if (std::memcmp(own.data(), head.data(), static_cast<std::size_t>(count) * sizeof(float)) !=
        0) {
      throw DataError(
          fmt::format("{} differs from the embedding, but {} says that they are one "
                      "(tie_word_embeddings): if they are not, set it to false",
                      where(kHead), kConfigName));
    }
  }
}

std::vector<fs::path> HfModel::paths() const {
  std::vector<fs::path> paths = files_.paths();
  paths.push_back(folder_ / kConfigName);
  return paths;
}

void HfModel::check_rest() const {
  std::set<std::string> used;
  for (const auto& [name, stored] : stored_) {
    used.insert(stored);
  }
  if (config_.model.tie_embeddings) {
    used.insert(kHead);
  }
  for (const auto& [name, tensor] : files_.tensors()) {
    if (config_.model.alibi && std::string_view(kJaisSlopes).ends_with(name) &&
        name.ends_with("relative_pe.slopes")) {
      check_slopes(name);
    } else if (!used.contains(name) && !is_derived(name)) {
      throw DataError(
          fmt::format("{} is not part of the model that {} describes", where(name), kConfigName));
    }
  }
}

// The slopes may have been rounded to bf16.
void HfModel::check_slopes(const std::string& stored) const {
  constexpr float kRoom = 1.0F / 128;
  const std::vector<float> own = jais_slopes(config_.model);
  if (files_.find(stored)->elements() != std::ssize(own)) {
    throw DataError(fmt::format("{} has the shape [{}], but {} says that there are {} heads",
                                where(stored), fmt::join(files_.find(stored)->shape, ", "),
                                kConfigName, own.size()));
  }
  std::vector<float> found(own.size());
  files_.read(stored, 0, std::ssize(found), found.data());
  for (std::size_t head = 0; head < own.size(); ++head) {
    if (!(std::abs(found[head] - own[head]) <= kRoom * own[head])) {
      throw DataError(
          fmt::format("{}: the slope of head {} is {}: this program computes only those of ALiBi's "
                      "paper, which is {} here",
                      where(stored), head, found[head], own[head]));
    }
  }
}

void HfModel::find_dtype() {
  dtype_ = files_.find(stored_.begin()->second)->dtype;
  for (const auto& [name, stored] : stored_) {
    if (files_.find(stored)->dtype != dtype_) {
      dtype_ = DType::f32;
    }
  }
  if (dtype_ != DType::bf16 && dtype_ != DType::f16) {
    dtype_ = DType::f32;
  }
}

void HfModel::read(const std::string& name, std::int64_t first, std::int64_t count,
                   float* to) const {
  files_.read(stored_.at(name), first, count, to);
}

const ModelTensor& HfModel::tensor_of(const std::string& name) const {
  const auto at = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const ModelTensor& tensor) { return tensor.name == name; });
  check(at != tensors_.end(), "only tensors of the model are read");
  return *at;
}

std::vector<float> HfModel::read(const std::string& name) const {
  std::vector<float> elements(static_cast<std::size_t>(tensor_of(name).shape.elements()));
  read(name, 0, std::ssize(elements), elements.data());
  return elements;
}

}  // namespace trireme
