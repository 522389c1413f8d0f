#include "src/nn/model_size.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "src/nn/module_sizes.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostLogits = std::int64_t{1} << 26;

std::int64_t elements_of(const std::vector<ModuleSize>& modules) {
  std::int64_t elements = 0;
  for (const ModuleSize& module : modules) {
    elements += module.elements;
  }
  return elements;
}

}  // namespace

std::int64_t parameter_count(const ModelConfig& c) {
  const ModuleSizes sizes = module_sizes(c);
  const std::int64_t block = elements_of(sizes.attention) + elements_of(sizes.mlp);
  return elements_of(sizes.before) + c.layers * block + elements_of(sizes.after);
}

namespace {

// Returns the sum of the widths of a product's input and output, over the products with adapters.
std::int64_t adapted_widths(const ModelConfig& c) {
  const std::int64_t keys = c.kv_heads * c.head_dim;
  const std::map<std::string_view, std::int64_t> inner = {{"c_attn", c.qkv_width()},
                                                          {"attn.c_proj", c.attention_width()},
                                                          {"c_fc", c.ffn},
                                                          {"c_fc2", c.ffn},
                                                          {"mlp.c_proj", c.ffn},
                                                          {"q_proj", c.attention_width()},
                                                          {"k_proj", keys},
                                                          {"v_proj", keys},
                                                          {"o_proj", c.attention_width()},
                                                          {"gate_proj", c.ffn},
                                                          {"up_proj", c.ffn},
                                                          {"down_proj", c.ffn}};
  std::int64_t widths = 0;
  for (const std::string& product : c.lora.products) {
    widths += c.hidden + inner.at(product);
  }
  return widths;
}

}  // namespace

namespace {

std::int64_t frozen_elements(const FrozenModules& frozen, const std::vector<ModuleSize>& modules,
                             const std::string& prefix = "") {
  std::int64_t elements = 0;
  for (const ModuleSize& module : modules) {
    elements += frozen.holds_module(prefix + module.name) ? module.elements : 0;
  }
  return elements;
}

// HalfBlock is the attention or the MLP of a block, with its norm.
struct HalfBlock {
  std::int64_t elements = 0;
  std::int64_t frozen = 0;
  bool is_attention = false;
};

std::vector<HalfBlock> half_blocks(const ModelConfig& c, const ModuleSizes& sizes) {
  std::vector<HalfBlock> halves;
  for (std::int64_t block = 0; block < c.layers; ++block) {
    const std::string prefix = fmt::format("{}.{}.", sizes.blocks, block);
    for (const auto* modules : {&sizes.attention, &sizes.mlp}) {
      halves.push_back({elements_of(*modules), frozen_elements(c.frozen, *modules, prefix),
                        modules == &sizes.attention});
    }
  }
  return halves;
}

}  // namespace

std::int64_t trained_parameter_count(const ModelConfig& c) {
  if (c.lora.is_on()) {
    return c.layers * c.lora.rank * adapted_widths(c);
  }
  if (!c.frozen.is_on()) {
    return parameter_count(c);
  }
  const ModuleSizes sizes = module_sizes(c);
  std::int64_t trained = parameter_count(c) - frozen_elements(c.frozen, sizes.before) -
                         frozen_elements(c.frozen, sizes.after);
  for (const HalfBlock& half : half_blocks(c, sizes)) {
    trained -= half.frozen;
  }
  return trained;
}

std::vector<BackwardWork> backward_work(const ModelConfig& c) {
  std::vector<BackwardWork> works(static_cast<std::size_t>(2 * c.layers), BackwardWork::all);
  if (!c.frozen.is_on()) {
    return works;
  }
  const ModuleSizes sizes = module_sizes(c);
  const std::vector<HalfBlock> halves = half_blocks(c, sizes);
  bool still = frozen_elements(c.frozen, sizes.before) == elements_of(sizes.before);
  for (std::size_t i = 0; i < works.size(); ++i) {
    const bool is_frozen = halves[i].frozen == halves[i].elements;
    still = still && is_frozen;
    works[i] = still ? BackwardWork::none : is_frozen ? BackwardWork::inputs : BackwardWork::all;
  }
  return works;
}

namespace {

// Per weight: 2 forward, 2 for the gradient of the input, 2 for that of the weight.
double flops_of_weights(std::int64_t elements, std::int64_t frozen) {
  return 6.0 * static_cast<double>(elements - frozen) + 4.0 * static_cast<double>(frozen);
}

// Returns flops_per_token() of a model with frozen modules.
double flops_beside_frozen(const ModelConfig& c, double attention) {
  const ModuleSizes sizes = module_sizes(c);
  const std::vector<HalfBlock> halves = half_blocks(c, sizes);
  const std::vector<BackwardWork> works = backward_work(c);
  const auto outside = [&](const std::vector<ModuleSize>& modules) {
    return flops_of_weights(elements_of(modules), frozen_elements(c.frozen, modules));
  };
  double flops = outside(sizes.after) + (c.tie_embeddings ? outside(sizes.before) : 0);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const bool still = works[i] == BackwardWork::none;
    flops += still ? 2.0 * static_cast<double>(halves[i].elements)
                   : flops_of_weights(halves[i].elements, halves[i].frozen);
    flops += halves[i].is_attention ? (still ? 2.0 : 6.0) * attention : 0;
  }
  return flops;
}

}  // namespace

double flops_per_token(const ModelConfig& c, std::int64_t sequence) {
  const double attention = static_cast<double>(c.attention_width()) * static_cast<double>(sequence);
  if (c.frozen.is_on()) {
    return flops_beside_frozen(c, attention);
  }
  const double passes = c.lora.is_on() ? 4.0 : 6.0;
  const std::int64_t multiplied = parameter_count(c) - (c.tie_embeddings ? 0 : c.vocab * c.hidden);
  return passes * static_cast<double>(multiplied) + 6.0 * static_cast<double>(c.layers) * attention;
}

ForwardFlops forward_flops(const ModelConfig& c, std::int64_t sequence) {
  const std::int64_t heads = c.attention_width();
  const std::int64_t projections = 2 * c.hidden * (c.qkv_width() + heads);
  const std::int64_t matrices = c.has_gated_mlp() ? 3 : 2;
  return {static_cast<double>(projections + 2 * heads * sequence),
          static_cast<double>(2 * matrices * c.hidden * c.ffn),
          static_cast<double>(2 * c.hidden * c.vocab)};
}

std::int64_t logits_rows(const ModelConfig& c) {
  return std::max<std::int64_t>(kMostLogits / c.vocab, 1);
}

}  // namespace trireme
