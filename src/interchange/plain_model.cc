#include "src/interchange/plain_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include "io/checkpoint/workers.h"

namespace trireme {
namespace {

using Values = std::vector<double>;

// Calculator holds the stream x [T,C] and applies one block after the other to it.
class Calculator {
 public:
  Calculator(const ModelConfig& config, const ReadWeight& read, std::int64_t time, int threads,
             RotaryPairs pairs)
      : c_(config), read_(read), time_(time), threads_(threads), pairs_(pairs) {}

  Values logits(std::span<const std::int32_t> ids);

 private:
  void embed(std::span<const std::int32_t> ids);
  void gpt2_block(const std::string& name);
  void llama_block(const std::string& name);
  // Returns the norm of each row of x_.
  Values layer_norm(const std::string& name) const;
  Values rms_norm(const std::string& name) const;
  // Returns rows [T,in] times a matrix [in,out], or [out,in] if it is transposed.
  Values product(const Values& rows, const std::string& name, std::int64_t out,
                 bool transposed) const;
  Values product_and_bias(const Values& rows, const std::string& name, std::int64_t out) const;
  Values projected(const Values& rows, const std::string& name, std::int64_t out) const;
  void rotate(Values& rows, std::int64_t heads) const;
  Values attend(const Values& q, const Values& k, const Values& v) const;
  void add(const Values& branch) {
    std::transform(x_.begin(), x_.end(), branch.begin(), x_.begin(), std::plus<>());
  }

  const ModelConfig& c_;
  const ReadWeight& read_;
  std::int64_t time_;
  int threads_;
  RotaryPairs pairs_;
  Values x_;
};

// Copies `width` columns of rows [T,stride] from column `first` on.
Values columns(const Values& rows, std::int64_t stride, std::int64_t first, std::int64_t width) {
  Values part;
  for (std::int64_t at = first; at < std::ssize(rows); at += stride) {
    part.insert(part.end(), rows.begin() + at, rows.begin() + at + width);
  }
  return part;
}

void Calculator::embed(std::span<const std::int32_t> ids) {
  const bool gpt2 = c_.family == Family::gpt2;
  const std::vector<float> tokens =
      read_(gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight");
  const bool learned = c_.has_learned_positions();
  const std::vector<float> positions =
      learned ? read_("transformer.wpe.weight") : std::vector<float>();
  for (std::int64_t t = 0; t < time_; ++t) {
    const std::int64_t row = ids[static_cast<std::size_t>(t)] * c_.hidden;
    for (std::int64_t i = 0; i < c_.hidden; ++i) {
      const double position =
          learned ? positions[static_cast<std::size_t>(t * c_.hidden + i)] : 0.0F;
      x_.push_back(c_.embedding_scale * (tokens[static_cast<std::size_t>(row + i)] + position));
    }
  }
}

Values Calculator::layer_norm(const std::string& name) const {
  const std::vector<float> weight = read_(name + ".weight");
  const std::vector<float> bias = read_(name + ".bias");
  Values y;
  for (auto row = x_.begin(); row != x_.end(); row += c_.hidden) {
    double mean = 0;
    double variance = 0;
    std::for_each(row, row + c_.hidden, [&](double v) { mean += v; });
    mean /= static_cast<double>(c_.hidden);
    std::for_each(row, row + c_.hidden, [&](double v) { variance += (v - mean) * (v - mean); });
    variance /= static_cast<double>(c_.hidden);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      y.push_back((row[static_cast<std::ptrdiff_t>(i)] - mean) /
                      std::sqrt(variance + c_.norm_epsilon) * weight[i] +
                  bias[i]);
    }
  }
  return y;
}

Values Calculator::rms_norm(const std::string& name) const {
  const std::vector<float> weight = read_(name + ".weight");
  Values y;
  for (auto row = x_.begin(); row != x_.end(); row += c_.hidden) {
    double squares = 0;
    std::for_each(row, row + c_.hidden, [&](double v) { squares += v * v; });
    const double scale = 1 / std::sqrt(squares / static_cast<double>(c_.hidden) + c_.norm_epsilon);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      y.push_back(row[static_cast<std::ptrdiff_t>(i)] * scale * weight[i]);
    }
  }
  return y;
}

// The loops run along the rows of the stored matrix.
Values Calculator::product(const Values& rows, const std::string& name, std::int64_t out,
                           bool transposed) const {
  const std::vector<float> w = read_(name);
  const std::int64_t in = std::ssize(rows) / time_;
  Values y(static_cast<std::size_t>(time_ * out), 0.0);
  const std::int64_t parts = std::min<std::int64_t>(threads_, out);
  parallel_for(threads_, parts, [&](std::int64_t part) {
    const std::int64_t first = out * part / parts;
    const std::int64_t end = out * (part + 1) / parts;
    for (std::int64_t t = 0; t < time_; ++t) {
      const double* const x = rows.data() + t * in;
      double* const to = y.data() + t * out;
      if (transposed) {
        for (std::int64_t o = first; o < end; ++o) {
          const float* const row = w.data() + o * in;
          double sum = 0;
          for (std::int64_t i = 0; i < in; ++i) {
            sum += x[i] * row[i];
          }
          to[o] = sum;
        }
      } else {
        for (std::int64_t i = 0; i < in; ++i) {
          const float* const row = w.data() + i * out;
          for (std::int64_t o = first; o < end; ++o) {
            to[o] += x[i] * row[o];
          }
        }
      }
    }
  });
  return y;
}

Values Calculator::product_and_bias(const Values& rows, const std::string& name,
                                    std::int64_t out) const {
  Values y = product(rows, name + ".weight", out, false);
  const std::vector<float> bias = read_(name + ".bias");
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] += bias[i % bias.size()];
  }
  return y;
}

// Returns queries, keys or values.
Values Calculator::projected(const Values& rows, const std::string& name, std::int64_t out) const {
  Values y = product(rows, name + ".weight", out, true);
  const std::vector<float> bias = c_.qkv_bias ? read_(name + ".bias") : std::vector<float>{0.0F};
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] += bias[i % bias.size()];
  }
  return y;
}

// The frequency of a pair of channels, in radians per position; s: as in Llama 3 if factor > 0.
double frequency(const ModelConfig& c, std::int64_t pair) {
  const double plain =
      1 / std::pow(c.rope_theta, 2.0 * static_cast<double>(pair) / static_cast<double>(c.head_dim));
  const RopeScaling& s = c.rope_scaling;
  if (s.factor == 0) {
    return plain;
  }
  const double turns = static_cast<double>(s.original_context) * plain / (2 * std::numbers::pi);
  if (turns > s.high_freq_factor) {
    return plain;
  }
  if (turns < s.low_freq_factor) {
    return plain / s.factor;
  }
  const double share = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - share) * plain / s.factor + share * plain;
}

// rows: [T, heads, D].
void Calculator::rotate(Values& rows, std::int64_t heads) const {
  const std::int64_t half = c_.head_dim / 2;
  const bool in_halves = pairs_ == RotaryPairs::halves;
  for (std::int64_t j = 0; j < half; ++j) {
    // The model keeps frequencies as floats, which matters at late positions.
    const double turn = static_cast<float>(frequency(c_, j));
    for (std::int64_t row = 0; row < time_ * heads; ++row) {
      const double angle = turn * static_cast<double>(row / heads);
      double* const head = rows.data() + row * c_.head_dim;
      double& a = in_halves ? head[j] : head[2 * j];
      double& b = in_halves ? head[j + half] : head[2 * j + 1];
      const double old = a;
      a = old * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + old * std::sin(angle);
    }
  }
}

// The slope of ALiBi: the first heads, as many as the largest power of two among them, have 2^(-8 /
// that power) to the powers 1, 2, ..., and each further one a slope midway between two of them.
double distance_slope(std::int64_t head, std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) {
    power *= 2;
  }
  const double step = 8 / static_cast<double>(power);
  return head < power ? std::pow(2, -step * static_cast<double>(head + 1))
                      : std::pow(2, -step * (static_cast<double>(head - power) + 0.5));
}

// q: [T, heads, D]; k, v: [T, kv_heads, D]. Returns [T, heads, D].
Values Calculator::attend(const Values& q, const Values& k, const Values& v) const {
  const std::int64_t d = c_.head_dim;
  const std::int64_t shared = c_.heads / c_.kv_heads;
  const double scale =
      c_.attention_scale > 0 ? c_.attention_scale : 1 / std::sqrt(static_cast<double>(d));
  Values y(q.size(), 0.0);
  for (std::int64_t row = 0; row < time_ * c_.heads; ++row) {
    const std::int64_t t = row / c_.heads;
    const std::int64_t head = row % c_.heads / shared;
    const auto at = [&](std::int64_t past) { return (past * c_.kv_heads + head) * d; };
    Values weights;
    for (std::int64_t past = 0; past <= t; ++past) {
      double score = 0;
      for (std::int64_t i = 0; i < d; ++i) {
        score +=
            q[static_cast<std::size_t>(row * d + i)] * k[static_cast<std::size_t>(at(past) + i)];
      }
      const double bias = c_.alibi ? distance_slope(row % c_.heads, c_.heads) : 0;
      weights.push_back(score * scale - bias * static_cast<double>(t - past));
    }
    const double most = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) {
      weight = std::exp(weight - most);
      sum += weight;
    }
    for (std::int64_t past = 0; past <= t; ++past) {
      for (std::int64_t i = 0; i < d; ++i) {
        y[static_cast<std::size_t>(row * d + i)] += weights[static_cast<std::size_t>(past)] / sum *
                                                    v[static_cast<std::size_t>(at(past) + i)];
      }
    }
  }
  return y;
}

void Calculator::gpt2_block(const std::string& name) {
  const std::int64_t c = c_.hidden;
  const Values packed = product_and_bias(layer_norm(name + "ln_1"), name + "attn.c_attn", 3 * c);
  const Values heads = attend(columns(packed, 3 * c, 0, c), columns(packed, 3 * c, c, c),
                              columns(packed, 3 * c, 2 * c, c));
  add(product_and_bias(heads, name + "attn.c_proj", c));
  const Values y = layer_norm(name + "ln_2");
  Values inner = product_and_bias(y, name + "mlp.c_fc", c_.ffn);
  if (c_.swiglu) {
    const Values gate = product_and_bias(y, name + "mlp.c_fc2", c_.ffn);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
  } else {
    for (double& v : inner) {
      const double scaled = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
      v = 0.5 * v * (1 + std::tanh(scaled));
    }
  }
  add(product_and_bias(inner, name + "mlp.c_proj", c));
}

void Calculator::llama_block(const std::string& name) {
  const std::int64_t keys = c_.kv_heads * c_.head_dim;
  const Values x = rms_norm(name + "input_layernorm");
  Values q = projected(x, name + "self_attn.q_proj", c_.attention_width());
  Values k = projected(x, name + "self_attn.k_proj", keys);
  const Values v = projected(x, name + "self_attn.v_proj", keys);
  rotate(q, c_.heads);
  rotate(k, c_.kv_heads);
  add(product(attend(q, k, v), name + "self_attn.o_proj.weight", c_.hidden, true));
  const Values y = rms_norm(name + "post_attention_layernorm");
  Values gate = product(y, name + "mlp.gate_proj.weight", c_.ffn, true);
  const Values up = product(y, name + "mlp.up_proj.weight", c_.ffn, true);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  }
  add(product(gate, name + "mlp.down_proj.weight", c_.hidden, true));
}

Values Calculator::logits(std::span<const std::int32_t> ids) {
  embed(ids);
  const bool gpt2 = c_.family == Family::gpt2;
  for (std::int64_t block = 0; block < c_.layers; ++block) {
    if (gpt2) {
      gpt2_block(fmt::format("transformer.h.{}.", block));
    } else {
      llama_block(fmt::format("model.layers.{}.", block));
    }
  }
  const Values y = gpt2 ? layer_norm("transformer.ln_f") : rms_norm("model.norm");
  const std::string embedding = gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
  Values logits = product(y, c_.tie_embeddings ? embedding : "lm_head.weight", c_.vocab, true);
  for (double& logit : logits) {
    logit *= c_.logit_scale;
  }
  return logits;
}

}  // namespace

std::vector<double> plain_logits(const ModelConfig& config, const ReadWeight& read,
                                 std::span<const std::int32_t> ids, int threads,
                                 RotaryPairs pairs) {
  return Calculator(config, read, std::ssize(ids), threads, pairs).logits(ids);
}

}  // namespace trireme
