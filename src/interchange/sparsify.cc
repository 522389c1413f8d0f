#include "src/interchange/sparsify.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/intact_step.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/interchange/carried_files.h"
#include "src/interchange/export.h"
#include "src/interchange/new_checkpoint.h"
#include "src/interchange/pruning.h"
#include "src/nn/model_size.h"
#include "src/train/saving/first_weights.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/step_tokenizer.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr const char* kPattern = "2:4";

// Returns the products to prune, in the model's order.
std::vector<std::string> chosen_products(const std::vector<std::string>& names,
                                         const ModelConfig& model) {
  std::vector<std::string> known = lora_products(model);
  const auto is_named = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> chosen;
  for (const std::string& name : known) {
    if (is_named("all") || is_named(name)) {
      chosen.push_back(name);
    }
  }
  known.insert(known.end(), {kOutputProduct, "all"});
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw ConfigError(fmt::format("--products names '{}': a {} model has {}", name,
                                    family_name(model.family), fmt::join(known, ", ")));
    }
  }
  if (is_named(kOutputProduct)) {
    if (model.tie_embeddings) {
      throw ConfigError(
          fmt::format("--products {}: the output matrix of this model is its embedding, which is "
                      "not pruned",
                      kOutputProduct));
    }
    chosen.emplace_back(kOutputProduct);
  }
  return chosen;
}

// Sparsifier makes the elements of the new checkpoint and counts its zeros. It holds one matrix at
// a time, and expects calls in the order of the tensors, on one thread.
class Sparsifier {
 public:
  // Throws ConfigError if the options do not suit the model.
  Sparsifier(CheckpointWeights& weights, const SparsifyOptions& options)
      : weights_(weights),
        options_(options),
        names_(chosen_products(options.products, weights.model())) {
    std::int64_t most = 0;
    for (const ModelTensor& tensor : weights.tensors()) {
      if (product_of(tensor).empty()) {
        continue;
      }
      most = std::max(most, tensor.shape.elements());
      if (!options.sparsity && inputs(tensor) % kPruneGroup != 0) {
        throw ConfigError(
            fmt::format("{} has {} inputs, which are no whole groups of {}: use --sparsity, or "
                        "leave it out of --products",
                        tensor.name, inputs(tensor), kPruneGroup));
      }
    }
    elements_.reserve(static_cast<std::size_t>(most));
  }

  void make(const std::string& name, std::int64_t first, std::int64_t count, float* to) {
    const ModelTensor& tensor = tensor_of(name);
    const std::string product = product_of(tensor);
    if (product.empty()) {
      weights_.read(tensor, first, count, to);
    } else {
      if (held_ != name) {
        hold(tensor, counts_[product]);
      }
      std::copy_n(elements_.begin() + first, count, to);
    }
    zeros_ += std::count(to, to + count, 0.0F);
  }

  // Collective. Returns the counts of all ranks.
  SparsifyResult counts(Communicator& world) const {
    json own = {{"", {0, 0, zeros_}}};
    for (const auto& [name, product] : counts_) {
      own[name] = {product.matrices, product.elements, product.zeros};
    }
    std::map<std::string, SparsifiedProduct> all;
    for (const std::string& text : all_gather_text(world, own.dump())) {
      const json of_rank = json::parse(text);
      for (const auto& [name, numbers] : of_rank.items()) {
        SparsifiedProduct& sum = all[name];
        sum.matrices += numbers[0].get<std::int64_t>();
        sum.elements += numbers[1].get<std::int64_t>();
        sum.zeros += numbers[2].get<std::int64_t>();
      }
    }
    SparsifyResult result;
    result.zeros = all[""].zeros;
    for (const std::string& name : names_) {
      result.products.push_back(all[name]);
      result.products.back().name = name;
    }
    return result;
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  const ModelTensor& tensor_of(const std::string& name) const {
    const auto& all = weights_.tensors();
    const auto at = std::lower_bound(
        all.begin(), all.end(), name,
        [](const ModelTensor& tensor, const std::string& other) { return tensor.name < other; });
    check(at != all.end() && at->name == name, "only tensors of the model are made");
    return *at;
  }

  // Returns the product whose weight this is, or "" if it is not pruned.
  std::string product_of(const ModelTensor& tensor) const {
    for (const std::string& name : names_) {
      const std::string end = name + ".weight";
      if (tensor.name == end || tensor.name.ends_with("." + end)) {
        return name;
      }
    }
    return "";
  }

  // GPT-2 stores the matrices of its layers [in,out]; all others are [out,in].
  bool inputs_are_rows(const ModelTensor& tensor) const {
    return weights_.model().family == Family::gpt2 && product_of(tensor) != kOutputProduct;
  }
  std::int64_t inputs(const ModelTensor& tensor) const {
    return tensor.shape[inputs_are_rows(tensor) ? 0 : 1];
  }

  // Reads and prunes a matrix.
  void hold(const ModelTensor& tensor, SparsifiedProduct& counts) {
    elements_.resize(static_cast<std::size_t>(tensor.shape.elements()));
    held_ = tensor.name;
    const std::int64_t count = std::ssize(elements_);
    weights_.read(tensor, 0, count, elements_.data());
    if (options_.sparsity) {
      prune_smallest(elements_.data(), count,
                     std::llround(*options_.sparsity * static_cast<double>(count)));
    } else {
      prune_by_pattern(elements_.data(), tensor.shape[0], tensor.shape[1], inputs_are_rows(tensor));
    }
    ++counts.matrices;
    counts.elements += count;
    counts.zeros += std::count(elements_.begin(), elements_.end(), 0.0F);
  }

  CheckpointWeights& weights_;
  const SparsifyOptions& options_;
  std::vector<std::string> names_;
  std::string held_;             // the matrix at hand
  std::vector<float> elements_;  // of this matrix, pruned
  std::map<std::string, SparsifiedProduct> counts_;
  std::int64_t zeros_ = 0;  // among all elements made
};

// Without what describes state, adapters or frozen modules that the new checkpoint does not have.
json config_of(const Manifest& source) {
  json config = json::object();
  for (const auto& [name, value] : source.meta.config->items()) {
    if (!name.starts_with("optimizer.") && !name.starts_with("lora.") && name != "train.frozen") {
      config[name] = value;
    }
  }
  return config;
}

void copy_fields(const Manifest& from, std::initializer_list<const char*> names, json& to) {
  for (const char* const name : names) {
    if (from.meta.extra->contains(name)) {
      to[name] = from.meta.extra->at(name);
    }
  }
}

// Returns what the source records of its tokenizer and of the model with which it began. A run with
// adapters or frozen modules records a base instead of the latter, which the new checkpoint, with
// all weights, no longer has.
json records_of(const CheckpointWeights& weights) {
  json records = json::object();
  copy_fields(*weights.step().manifest,
              {"tokenizer", "tokenizer_vocab", "tokenizer_digest", kTokenizerFolderField}, records);
  copy_fields(*weights.origin().manifest, {"imported", kFirstWeightsField}, records);
  if (const StepFolder* const base = weights.base()) {
    if (const auto first = first_weights_of(*base, tokenizer_digest_in(base->path))) {
      records[kFirstWeightsField] = **first;
    }
  }
  return records;
}

CheckpointMeta meta_of(const CheckpointWeights& weights, const SparsifyOptions& options,
                       const SparsifyResult& result) {
  const Manifest& source = *weights.step().manifest;
  json extra = records_of(weights);
  json products = json::object();
  for (const SparsifiedProduct& product : result.products) {
    products[product.name] = {{"elements", product.elements}, {"zeros", product.zeros}};
  }
  json pruned = {{"products", products},
                 {"parent", fs::absolute(weights.step().path).lexically_normal().string()},
                 {"parent_sha256", weights.step().manifest_sha256}};
  if (options.sparsity) {
    pruned["sparsity"] = *options.sparsity;
  } else {
    pruned["pattern"] = kPattern;
  }
  if (options.weights == Weights::average) {
    pruned["ema"] = true;
  }
  extra["pruned"] = std::move(pruned);
  CheckpointMeta meta;
  meta.config = JsonValue(config_of(source));
  meta.extra = JsonValue(std::move(extra));
  meta.label = source.meta.label;
  return meta;
}

SparsifyResult sparsify_step(const fs::path& step, const SparsifyOptions& options,
                             Communicator& world, StepKeys& keys) {
  CheckpointWeights weights = open_weights(
      {.checkpoint = step, .out = options.out, .weights = options.weights, .plain = true}, world,
      keys);
  if (options.admit) {
    options.admit(weights.step().manifest->meta.label);
  }
  Sparsifier sparsifier(weights, options);
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  const std::shared_ptr<const FolderKey> key = keys.only_key();
  const MakeElements make = [&](const std::string& name, std::int64_t first, std::int64_t count,
                                float* to) { sparsifier.make(name, first, count, to); };
  const ShardIo one_thread{.threads = 1};
  std::vector<ShardTable> tables = write_new_shards(
      {weights.tensors(), make, kNewShardBytes, data_key(key), one_thread}, draft.path(), world);
  SparsifyResult result = sparsifier.counts(world);
  result.checkpoint = weights.step().path;
  result.step = weights.step().manifest->meta.step;
  result.parameters = parameter_count(weights.model());
  run_on_root(world, [&]() -> std::string {
    const ModelTokenizer tokenizer = find_model_tokenizer(weights);
    copy_carried_files(tokenizer, draft.path());
    result.warning = tokenizer.warning;
    result.bytes =
        write_new_manifest(draft.path(), std::move(tables), meta_of(weights, options, result),
                           key.get(), one_thread.read_back);
    if (options.finish) {
      options.finish(draft.path(), weights.step());
    }
    draft.keep();
    return "";
  });
  result.seconds = watch.seconds();
  return result;
}

}  // namespace

SparsifyResult sparsify(const SparsifyOptions& options, Communicator& world, StepKeys& keys) {
  check_outside(options.out, options.checkpoint, "is to be pruned");
  SparsifyResult result;
  std::vector<std::string> skipped = use_intact_step(
      options.checkpoint, world, keys.options(),
      [&](const fs::path& step) { result = sparsify_step(step, options, world, keys); });
  result.skipped = std::move(skipped);
  return result;
}

}  // namespace trireme
