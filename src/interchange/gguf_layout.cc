#include "src/interchange/gguf_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/interchange/hf_jais.h"

namespace trireme {
namespace {

struct Renaming {
  std::string_view from;
  std::string_view to;
  GgufPart::Layout layout = GgufPart::Layout::same;
};

// Names of a block's tensors, without the block's number.
constexpr std::array<Renaming, 7> kGpt2 = {
    {{"ln_1", "attn_norm"},
     {"attn.c_attn", "attn_qkv", GgufPart::Layout::transposed},
     {"attn.c_proj", "attn_output", GgufPart::Layout::transposed},
     {"ln_2", "ffn_norm"},
     {"mlp.c_fc", "ffn_up", GgufPart::Layout::transposed},
     {"mlp.c_fc2", "ffn_gate", GgufPart::Layout::transposed},
     {"mlp.c_proj", "ffn_down", GgufPart::Layout::transposed}}};
constexpr std::array<Renaming, 9> kLlama = {
    {{"input_layernorm", "attn_norm"},
     {"self_attn.q_proj", "attn_q", GgufPart::Layout::pairs},
     {"self_attn.k_proj", "attn_k", GgufPart::Layout::pairs},
     {"self_attn.v_proj", "attn_v"},
     {"self_attn.o_proj", "attn_output"},
     {"post_attention_layernorm", "ffn_norm"},
     {"mlp.gate_proj", "ffn_gate"},
     {"mlp.up_proj", "ffn_up"},
     {"mlp.down_proj", "ffn_down"}}};
// Names of the other tensors.
constexpr std::array<Renaming, 6> kOutside = {{{"transformer.wte", "token_embd"},
                                               {"transformer.wpe", "position_embd"},
                                               {"transformer.ln_f", "output_norm"},
                                               {"model.embed_tokens", "token_embd"},
                                               {"model.norm", "output_norm"},
                                               {"lm_head", "output"}}};

template <class Renamings>
const Renaming& renaming_of(const Renamings& all, std::string_view name) {
  for (const Renaming& each : all) {
    if (each.from == name) {
      return each;
    }
  }
  check(false, "every tensor of a model has a name in GGUF files");
  return all.front();
}

// llama.cpp rotates the halves of a head for the architecture qwen2, and neighbours for llama.
bool rotates_halves(const ModelConfig& c) { return c.qkv_bias; }

GgufPart part_of(const ModelConfig& c, const ModelTensor& tensor) {
  const std::size_t dot = tensor.name.rfind('.');
  const std::string base = tensor.name.substr(0, dot);
  const std::string end = tensor.name.substr(dot);  // ".weight" or ".bias"
  const std::string_view prefix = c.family == Family::gpt2 ? "transformer.h." : "model.layers.";
  GgufPart part;
  part.source = tensor;
  if (!base.starts_with(prefix)) {
    part.name = std::string(renaming_of(kOutside, base).to) + end;
    return part;
  }
  const std::size_t number_end = base.find('.', prefix.size());
  const std::string number = base.substr(prefix.size(), number_end - prefix.size());
  const std::string_view within = std::string_view(base).substr(number_end + 1);
  const Renaming& renaming =
      c.family == Family::gpt2 ? renaming_of(kGpt2, within) : renaming_of(kLlama, within);
  part.name = "blk." + number + "." + std::string(renaming.to) + end;
  part.layout = tensor.shape.rank() == 2 ? renaming.layout : GgufPart::Layout::same;
  if (part.layout == GgufPart::Layout::pairs && rotates_halves(c)) {
    part.layout = GgufPart::Layout::same;
  }
  part.heads = renaming.to == "attn_k" ? c.kv_heads : c.heads;
  return part;
}

// Whether the file is of llama.cpp's architecture jais.
bool is_jais(const ModelConfig& c) { return c.alibi && c.swiglu; }

// Puts the factors that the architecture jais lacks into a part.
void scale_part(const ModelConfig& c, GgufPart& part) {
  const std::int64_t elements = part.source.shape.elements();
  if (part.name == "token_embd.weight") {
    part.factor = static_cast<float>(c.embedding_scale);
    part.scaled = elements;
  } else if (part.name == "output.weight") {
    part.factor = static_cast<float>(c.logit_scale);
    part.scaled = elements;
  } else if (part.name.find(".attn_qkv.") != std::string::npos) {
    const auto width = static_cast<double>(c.head_dim);
    const double scale = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(width);
    part.factor = static_cast<float>(scale * width);
    part.scaled = elements / c.qkv_width() * c.attention_width();
  }
  part.scaled = part.factor == 1 ? 0 : part.scaled;
}

// Copies rows [heads, D, in] so that row 2j + i of a head comes from its row j + i D/2, or the
// reverse.
void pair_rows(const GgufPart& part, const float* from, bool reverse, float* to) {
  const std::int64_t in = part.source.shape[1];
  const std::int64_t head_dim = part.source.shape[0] / part.heads;
  for (std::int64_t row = 0; row < part.source.shape[0]; ++row) {
    const std::int64_t at = row % head_dim;
    const std::int64_t other = row - at + at / 2 + at % 2 * (head_dim / 2);
    std::copy_n(from + (reverse ? row : other) * in, in, to + (reverse ? other : row) * in);
  }
}

// from: [rows, columns]; to: [columns, rows].
void transpose(const float* from, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to[c * rows + r] = from[r * columns + c];
    }
  }
}

std::uint32_t file_type(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return 0;
    case GgufType::f16:
      return 1;
    case GgufType::q4_0:
      return 2;
    case GgufType::q8_0:
      return 7;
    case GgufType::q4_k:
      return 14;  // "mostly Q4_K, small"
    case GgufType::bf16:
      return 32;
  }
  return 0;
}

std::uint32_t narrow_count(std::int64_t count) { return static_cast<std::uint32_t>(count); }

}  // namespace

std::vector<std::int64_t> GgufPart::shape() const {
  std::vector<std::int64_t> extents = source.shape.to_vector();
  if (layout == GgufPart::Layout::transposed) {
    std::swap(extents[0], extents[1]);
  }
  return extents;
}

std::vector<GgufPart> gguf_parts(const ModelConfig& config,
                                 const std::vector<ModelTensor>& tensors) {
  std::vector<GgufPart> parts;
  for (const ModelTensor& tensor : tensors) {
    parts.push_back(part_of(config, tensor));
  }
  if (!is_jais(config)) {
    return parts;
  }
  if (config.tie_embeddings) {
    const auto table = std::find_if(parts.begin(), parts.end(), [](const GgufPart& part) {
      return part.name == "token_embd.weight";
    });
    GgufPart head = *table;
    head.name = "output.weight";
    head.is_tied_head = true;
    parts.push_back(std::move(head));
  }
  for (GgufPart& part : parts) {
    scale_part(config, part);
  }
  return parts;
}

void to_gguf_layout(const GgufPart& part, const float* from, float* to) {
  const Shape& shape = part.source.shape;
  if (part.layout == GgufPart::Layout::pairs) {
    pair_rows(part, from, false, to);
  } else if (part.layout == GgufPart::Layout::transposed) {
    transpose(from, shape[0], shape[1], to);
  } else {
    std::copy_n(from, shape.elements(), to);
  }
  std::for_each(to, to + part.scaled, [&](float& x) { x *= part.factor; });
}

std::vector<float> from_gguf_layout(const GgufPart& part, std::vector<float> elements) {
  const Shape& shape = part.source.shape;
  if (part.layout == GgufPart::Layout::same) {
    return elements;
  }
  std::vector<float> to(elements.size());
  if (part.layout == GgufPart::Layout::pairs) {
    pair_rows(part, elements.data(), true, to.data());
  } else {
    transpose(elements.data(), shape[1], shape[0], to.data());
  }
  return to;
}

GgufType type_of_part(const GgufPart& part, GgufType type) {
  if (part.source.shape.rank() == 1 || part.name == "position_embd.weight") {
    return GgufType::f32;
  }
  const auto fits = [row = part.shape().back()](GgufType each) {
    return row % block_elements(each) == 0;
  };
  return fits(type) ? type : fits(GgufType::q8_0) ? GgufType::q8_0 : GgufType::f16;
}

std::map<std::string, GgufValue> gguf_values(const ModelConfig& c, const std::string& name,
                                             GgufType type) {
  const std::string family(c.qkv_bias ? "qwen2" : is_jais(c) ? "jais" : family_name(c.family));
  std::map<std::string, GgufValue> values = {
      {"general.architecture", family},
      {"general.name", name},
      {"general.file_type", file_type(type)},
      {family + ".vocab_size", narrow_count(c.vocab)},
      {family + ".context_length", narrow_count(c.context)},
      {family + ".embedding_length", narrow_count(c.hidden)},
      {family + ".feed_forward_length", narrow_count(c.ffn)},
      {family + ".block_count", narrow_count(c.layers)},
      {family + ".attention.head_count", narrow_count(c.heads)}};
  if (block_elements(type) > 1) {
    values["general.quantization_version"] = std::uint32_t{2};
  }
  const auto epsilon = static_cast<float>(c.norm_epsilon);
  if (c.family == Family::gpt2) {
    values[family + ".attention.layer_norm_epsilon"] = epsilon;
    if (is_jais(c)) {
      values[family + ".attention.max_alibi_bias"] = 8.0F;
    }
    return values;
  }
  values[family + ".attention.layer_norm_rms_epsilon"] = epsilon;
  values[family + ".attention.head_count_kv"] = narrow_count(c.kv_heads);
  values[family + ".attention.key_length"] = narrow_count(c.head_dim);
  values[family + ".attention.value_length"] = narrow_count(c.head_dim);
  values[family + ".rope.dimension_count"] = narrow_count(c.head_dim);
  values[family + ".rope.freq_base"] = static_cast<float>(c.rope_theta);
  return values;
}

ModelConfig gguf_model(const ModelConfig& config) {
  ModelConfig model = config;
  if (is_jais(config)) {
    model.embedding_scale = 1;
    model.logit_scale = 1;
    model.attention_scale = 1 / static_cast<double>(config.head_dim);
    model.tie_embeddings = false;
  }
  return model;
}

// llama.cpp reads the divisors of scaled frequencies for the architecture llama only, and would
// compute a qwen2 with plain ones.
void check_gguf_model(const ModelConfig& c) {
  if (c.qkv_bias && c.rope_scaling.factor != 0) {
    throw ConfigError(
        "llama.cpp does not scale the positions of models with biases of queries, keys and values "
        "(its architecture qwen2): export it with --format hf");
  }
  if (c.family == Family::gpt2 && !is_jais(c) && !is_plain_gpt2(c)) {
    throw ConfigError(
        "llama.cpp has no architecture for this model: its gpt2 has neither model.alibi nor "
        "model.swiglu nor scales, and its jais has both: export it with --format onnx");
  }
}

std::vector<float> rope_divisors(const ModelConfig& config) {
  const RopeScaling& s = config.rope_scaling;
  const auto context = static_cast<double>(s.original_context);
  std::vector<float> divisors;
  for (std::int64_t j = 0; j < config.head_dim / 2; ++j) {
    const double turns = context / (2 * std::numbers::pi) *
                         std::pow(config.rope_theta, -2.0 * static_cast<double>(j) /
                                                         static_cast<double>(config.head_dim));
    const double smooth = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    const double share = std::clamp(smooth, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - share) / s.factor + share)));
  }
  return divisors;
}

}  // namespace trireme
