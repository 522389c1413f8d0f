#include "src/nn/model_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/nn/model_size.h"
#include "src/nn/module_sizes.h"

namespace trireme {
namespace {

// Token ids are i32; the other limits keep every product of sizes far from 2^63.
constexpr std::int64_t kMostTokens = 2147483647;
constexpr std::int64_t kLargest = std::int64_t{1} << 24;
constexpr double kMostParameters = 0x1p50;
constexpr std::int64_t kMostRank = 4096;  // of adapters

class Problems {
 public:
  template <class... Args>
  void unless(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) {
      texts_.push_back(fmt::format(text, std::forward<Args>(args)...));
    }
  }
  // Returns whether the value is from 1 to `most`.
  bool range(std::string_view name, std::int64_t value, std::int64_t most) {
    const bool fits = value >= 1 && value <= most;
    unless(fits, "model.{} is {}: it must be from 1 to {}", name, value, most);
    return fits;
  }
  void raise() const {
    if (!texts_.empty()) {
      throw ConfigError(fmt::format("the model cannot be built: {}", fmt::join(texts_, "; ")));
    }
  }

 private:
  std::vector<std::string> texts_;
};

// Returns whether all sizes are in range. A value that complete() derived from a wrong size is not
// reported as a second problem.
bool check_sizes(const ModelConfig& c, Problems& problems) {
  const bool layers = problems.range("layers", c.layers, 1 << 16);
  const bool hidden = problems.range("hidden", c.hidden, kLargest);
  const bool heads = problems.range("heads", c.heads, 1 << 16);
  const bool kv_heads = heads && problems.range("kv_heads", c.kv_heads, 1 << 16);
  bool head_dim = hidden && heads;
  if (head_dim && c.head_dim == 0) {
    problems.unless(
        false,
        "model.hidden {} is not a multiple of model.heads {}, and model.head_dim is not given",
        c.hidden, c.heads);
    head_dim = false;
  } else if (head_dim) {
    head_dim = problems.range("head_dim", c.head_dim, 1 << 16);
  }
  const bool ffn = hidden && problems.range("ffn", c.ffn, kLargest);
  const bool vocab = problems.range("vocab", c.vocab, kMostTokens);
  const bool context = problems.range("context", c.context, kMostTokens);
  return layers && kv_heads && head_dim && ffn && vocab && context;
}

// Checks the number of parameters, with an upper bound computed in doubles, which cannot overflow.
void check_total(const ModelConfig& c, Problems& problems) {
  const auto h = static_cast<double>(c.hidden);
  const double heads = static_cast<double>(c.heads + c.kv_heads) * static_cast<double>(c.head_dim);
  const double layer = (h + 1) * (2 * heads + 3 * static_cast<double>(c.ffn) + 4);
  const double parameters =
      static_cast<double>(c.layers) * layer + h * static_cast<double>(2 * c.vocab + c.context + 2);
  problems.unless(parameters < kMostParameters,
                  "it has about {:.0e} parameters; at most 2^50 are supported", parameters);
}

void check_heads(const ModelConfig& c, Problems& problems) {
  problems.unless(c.heads % c.kv_heads == 0,
                  "model.heads {} is not a multiple of model.kv_heads {} (remainder {}), but each "
                  "key-value head serves the same number of query heads",
                  c.heads, c.kv_heads, c.heads % c.kv_heads);
  if (c.family == Family::gpt2) {
    problems.unless(
        c.heads * c.head_dim == c.hidden,
        "model.heads {} x model.head_dim {} = {}, which must equal model.hidden {} for GPT-2",
        c.heads, c.head_dim, c.heads * c.head_dim, c.hidden);
    problems.unless(
        c.kv_heads == c.heads,
        "model.kv_heads {} differs from model.heads {}, but GPT-2 has no grouped queries",
        c.kv_heads, c.heads);
    problems.unless(!c.qkv_bias,
                    "model.qkv_bias is true, but it is for the Llama family: the biases of GPT-2 "
                    "are always there");
  } else {
    problems.unless(c.head_dim % 2 == 0,
                    "model.head_dim {} is odd, but rotary positions rotate pairs of channels",
                    c.head_dim);
    problems.unless(!c.alibi,
                    "model.alibi is true, but it is for the GPT-2 family: Llama has rotary "
                    "positions");
    problems.unless(
        !c.swiglu,
        "model.swiglu is true, but it is for the GPT-2 family: Llama always has SwiGLU, "
        "without biases");
  }
}

void check_scales(const ModelConfig& c, Problems& problems) {
  constexpr double kLargestScale = 1e6;
  for (const auto& [name, scale] :
       {std::pair("embedding_scale", c.embedding_scale), std::pair("logit_scale", c.logit_scale)}) {
    problems.unless(scale > 1 / kLargestScale && scale < kLargestScale,
                    "model.{} is {}: it must be between 1e-6 and 1e6", name, scale);
    problems.unless(c.family == Family::gpt2 || scale == 1,
                    "model.{} is {}, but it is for the GPT-2 family: for Llama it must be 1", name,
                    scale);
  }
  const double scale = c.attention_scale;
  problems.unless(scale == 0 || (scale > 1 / kLargestScale && scale < kLargestScale),
                  "model.attention_scale is {}: it must be 0, which stands for 1 / "
                  "sqrt(head_dim), or between 1e-6 and 1e6",
                  scale);
  problems.unless(c.family == Family::gpt2 || scale == 0,
                  "model.attention_scale is {}, but it is for the GPT-2 family: for Llama it must "
                  "be 0",
                  scale);
}

// Returns whether the float that kernels make of a share is at least 0 and below 1. 0.99999999
// becomes 1.
bool is_share(double x) {
  const auto narrow = static_cast<float>(x);
  return narrow >= 0 && narrow < 1;
}

void check_reals(const ModelConfig& c, Problems& problems) {
  problems.unless(c.norm_epsilon > 0 && c.norm_epsilon < 1,
                  "model.norm_epsilon is {}: it must be above 0 and below 1", c.norm_epsilon);
  problems.unless(is_share(c.dropout),
                  "model.dropout is {}: as a 32-bit float, it must be at least 0 and below 1",
                  c.dropout);
  problems.unless(is_share(c.attention_dropout),
                  "model.attention_dropout is {}: as a 32-bit float, it must be at least 0 and "
                  "below 1",
                  c.attention_dropout);
  problems.unless(c.initializer_range >= 0 && c.initializer_range < 10,
                  "model.initializer_range is {}: it must be at least 0 and below 10",
                  c.initializer_range);
  problems.unless(c.rope_theta > 1, "model.rope_theta is {}: it must be above 1", c.rope_theta);
  const RopeScaling& s = c.rope_scaling;
  problems.unless(s.factor == 0 || s.factor >= 1,
                  "model.rope_scaling.factor is {}: it must be 0 (off) or at least 1", s.factor);
  problems.unless(
      s.factor == 0 || (s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor),
      "model.rope_scaling needs 0 < low_freq_factor {} < high_freq_factor {}", s.low_freq_factor,
      s.high_freq_factor);
  problems.unless(s.factor == 0 || s.original_context >= 1,
                  "model.rope_scaling.original_context is {}: it must be at least 1",
                  s.original_context);
}

void check_lora(const ModelConfig& c, Problems& problems) {
  const std::vector<std::string>& known = lora_products(c);
  const std::vector<std::string>& names = c.lora.products;
  for (auto name = names.begin(); name != names.end(); ++name) {
    problems.unless(std::find(known.begin(), known.end(), *name) != known.end(),
                    "lora.products names '{}': a {} model has {}, or all of them with 'all'", *name,
                    family_name(c.family), fmt::join(known, ", "));
    problems.unless(std::find(names.begin(), name, *name) == name,
                    "lora.products names '{}' more than once", *name);
  }
  problems.unless(c.lora.rank >= 1 && c.lora.rank <= std::min(c.hidden, kMostRank),
                  "lora.rank is {}: it must be from 1 to {}, and at most model.hidden {}",
                  c.lora.rank, kMostRank, c.hidden);
  problems.unless(c.lora.alpha > 0 && c.lora.alpha < 1e6,
                  "lora.alpha is {}: it must be above 0 and below a million", c.lora.alpha);
}

void check_frozen_path(const std::string& path, const ModuleSizes& sizes, std::int64_t layers,
                       Problems& problems) {
  const auto stands = [&](const std::vector<ModuleSize>& modules, const std::string& prefix) {
    return std::any_of(modules.begin(), modules.end(), [&](const ModuleSize& module) {
      return stands_for(path, prefix + module.name);
    });
  };
  bool found = stands(sizes.before, "") || stands(sizes.after, "");
  for (std::int64_t block = 0; block < layers && !found; ++block) {
    const std::string prefix = fmt::format("{}.{}.", sizes.blocks, block);
    found = stands(sizes.attention, prefix) || stands(sizes.mlp, prefix);
  }
  const auto names = [](const std::vector<ModuleSize>& modules) {
    std::vector<std::string> all;
    for (const ModuleSize& module : modules) {
      all.push_back(module.name);
    }
    return fmt::format("{}", fmt::join(all, ", "));
  };
  problems.unless(
      found,
      "train.frozen names '{}', which is no module of this model: it has {}, {}, and {}.0 to {}, "
      "each with {}, {}",
      path, names(sizes.before), names(sizes.after), sizes.blocks, layers - 1,
      names(sizes.attention), names(sizes.mlp));
}

// The matrices of queries, keys and values are one product with one gradient.
void check_frozen_products(const ModelConfig& c, const ModuleSizes& sizes, Problems& problems) {
  for (std::int64_t block = 0; block < c.layers && c.family == Family::llama; ++block) {
    const auto held = [&](const char* name) {
      return c.frozen.holds_module(fmt::format("{}.{}.self_attn.{}", sizes.blocks, block, name));
    };
    const bool first = held("q_proj");
    if (held("k_proj") != first || held("v_proj") != first) {
      problems.unless(false,
                      "train.frozen names some of q_proj, k_proj and v_proj of {}.{}: they are "
                      "computed as one product, so freeze all three or none",
                      sizes.blocks, block);
      return;
    }
  }
}

void check_frozen(const ModelConfig& c, Problems& problems) {
  const std::vector<std::string>& paths = c.frozen.paths;
  problems.unless(paths.size() <= kMostFrozenPaths,
                  "train.frozen names {} modules: at most {} are supported; a path such as "
                  "model.layers.0-11 names many",
                  paths.size(), kMostFrozenPaths);
  problems.unless(!c.lora.is_on(),
                  "train.frozen is for runs without adapters (lora.products), which freeze all "
                  "other weights anyway");
  if (paths.size() > kMostFrozenPaths) {
    return;
  }
  const ModuleSizes sizes = module_sizes(c);
  for (const std::string& path : paths) {
    check_frozen_path(path, sizes, c.layers, problems);
  }
  check_frozen_products(c, sizes, problems);
  problems.unless(trained_parameter_count(c) > 0,
                  "train.frozen names all modules of the model: nothing would be trained");
}

}  // namespace

Family parse_family(std::string_view name) {
  if (name == "gpt2") {
    return Family::gpt2;
  }
  if (name == "llama") {
    return Family::llama;
  }
  throw ConfigError(fmt::format("model.family is '{}': it must be gpt2 or llama", name));
}

const std::vector<std::string>& lora_products(const ModelConfig& config) {
  static const std::vector<std::string> gpt2 = {"c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"};
  static const std::vector<std::string> gated = {"c_attn", "attn.c_proj", "c_fc", "c_fc2",
                                                 "mlp.c_proj"};
  static const std::vector<std::string> llama = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                 "gate_proj", "up_proj", "down_proj"};
  return config.family == Family::llama ? llama : config.swiglu ? gated : gpt2;
}

std::string_view token_matrix(Family family) {
  return family == Family::gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
}

std::string_view family_name(Family family) { return family == Family::gpt2 ? "gpt2" : "llama"; }

namespace {

void complete_products(ModelConfig& c) {
  const std::vector<std::string>& known = lora_products(c);
  std::vector<std::string>& names = c.lora.products;
  if (names == std::vector<std::string>{"all"}) {
    names = known;
  }
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const auto place = [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) - known.begin();
    };
    return place(a) < place(b);
  });
}

}  // namespace

void ModelConfig::complete() {
  if (kv_heads == 0) {
    kv_heads = heads;
  }
  if (head_dim == 0 && heads > 0 && hidden % heads == 0) {
    head_dim = hidden / heads;
  }
  if (ffn == 0 && family == Family::gpt2 && hidden <= kLargest) {
    ffn = 4 * hidden;
  }
  complete_products(*this);
}

void ModelConfig::check_frozen_ranges() const {
  for (const std::string& path : frozen.paths) {
    if (end_of_ranges(path) >= layers) {
      throw ConfigError(fmt::format(
          "train.frozen names '{}', but model.layers is {}, so that the last block is {}: end the "
          "range there",
          path, layers, layers - 1));
    }
  }
}

void ModelConfig::validate() const {
  Problems problems;
  if (check_sizes(*this, problems)) {
    check_total(*this, problems);
    check_heads(*this, problems);
    if (frozen.is_on()) {
      check_frozen(*this, problems);
    }
  }
  check_reals(*this, problems);
  check_scales(*this, problems);
  if (lora.is_on()) {
    check_lora(*this, problems);
  }
  problems.raise();
}

}  // namespace trireme
