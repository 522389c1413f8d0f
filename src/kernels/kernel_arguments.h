// Defines the argument structs of kernels that take more than a few arguments. kernels.h has the
// rules they share.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "src/base/philox.h"
#include "src/device/device.h"

namespace trireme {

enum class Epilogue : std::uint8_t {
  none,
  gelu,           // aux = the sum, c = gelu(aux)
  gelu_backward,  // c = the sum * gelu'(aux)
};

// The formats of 8 bits (Micikevicius et al., FP8 Formats for Deep Learning, 2022): e4m3 has no
// infinity and numbers up to 448, e5m2 has numbers up to 57344.
enum class Fp8Format : std::uint8_t { none, e4m3, e5m2 };

// Fp8Operand lets a product take the numbers of 8 bits that are nearest to scale * x, divided by
// scale, instead of the elements x of an operand; what exceeds the format becomes its largest
// number. The scale is a power of two.
struct Fp8Operand {
  Fp8Format format = Fp8Format::none;
  // f32 [1]; empty, or 0 together with `most`: the largest scale for which no element of the
  // operand exceeds the format.
  ConstView scale = {};
  View most = {};  // f32 [1], raised to the operand's largest magnitude; or empty
};

// Rows of a matrix that begin at multiples of this many elements have the alignment that the
// fastest products of any type ask for.
inline constexpr std::int64_t kRowMultiple = 16;
inline constexpr std::int64_t aligned_row(std::int64_t columns) {
  return (columns + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

// C[M,N] = op(A)[M,K] op(B)[K,N]; T x T -> T or f32, summed in f32.
struct Matmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  ConstView a;          // stored [M,K], or [K,M] when transpose_a
  ConstView b;          // stored [K,N], or [N,K] when transpose_b
  View c;               // [M,N]
  ConstView bias = {};  // T [N], or empty
  View aux = {};        // T [M,N], for the GELU epilogues
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // adds to the old contents of C (f32 C only, no epilogue)
  Epilogue epilogue = Epilogue::none;
  // Elements from one stored row to the next; 0: rows are dense. No product reads or writes what
  // lies between rows. C is dense if there is a bias or an epilogue.
  std::int64_t pitch_a = 0;
  std::int64_t pitch_b = 0;
  std::int64_t pitch_c = 0;
  // Both have a format, or neither. Only for operands of bf16, by the CUDA table and the reference.
  Fp8Operand fp8_a = {};
  Fp8Operand fp8_b = {};

  std::int64_t row_of_a() const { return pitch_a > 0 ? pitch_a : (transpose_a ? m : k); }
  std::int64_t row_of_b() const { return pitch_b > 0 ? pitch_b : (transpose_b ? k : n); }
  std::int64_t row_of_c() const { return pitch_c > 0 ? pitch_c : n; }
};

struct ColumnSum {
  std::int64_t m = 0;
  std::int64_t n = 0;
  ConstView x;  // T [M,N]
  View sum;     // f32 [N]
};

// out[b,t,:] = token[ids[b,t],:] + position[first_position + t,:]
struct EmbeddingForward {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t channels = 0;
  std::int64_t first_position = 0;
  View out;                 // T [B,T,C]
  ConstView ids;            // i32 [B,T]
  ConstView token;          // T [V,C]
  ConstView position = {};  // T [positions,C], or empty
  // If the ranks of a group divide the vocabulary, token holds the rows of ids from first_id on,
  // and rows of `out` whose ids are not among them become zero.
  bool partial = false;
  std::int64_t first_id = 0;
};

// Adds to dtoken, which may already hold the gradient of a tied output matrix. Overwrites
// dposition: rows 0..T-1 become the sums over the batch, later rows zero.
struct EmbeddingBackward {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t channels = 0;
  ConstView dout;        // T [B,T,C]
  ConstView ids;         // i32 [B,T]
  View dtoken = {};      // f32 [V,C], or empty
  View dposition = {};   // f32 [positions,C], or empty
  bool partial = false;  // as in EmbeddingForward; skips the ids of other ranks
  std::int64_t first_id = 0;
};

// NormForward is LayerNorm (Ba et al., 2016) or RMSNorm (Zhang and Sennrich, 2019) over rows. If
// `residual` is given, sum = x + residual is stored and normalized instead of x.
struct NormForward {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  float epsilon = 1e-5F;
  ConstView x;              // T [R,C]
  ConstView residual = {};  // T [R,C], or empty
  View sum = {};            // T [R,C], only with residual; may be x or residual itself
  ConstView weight;         // T [C]
  ConstView bias = {};      // T [C]; empty for RMSNorm
  View y;                   // T [R,C]
  View mean = {};           // f32 [R]; empty for RMSNorm
  View rstd;                // f32 [R]
};

struct NormBackward {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  ConstView dy;              // T [R,C]
  ConstView x;               // T [R,C]: the normalized input (x, or sum if there was a residual)
  ConstView weight;          // T [C]
  ConstView mean = {};       // f32 [R]; empty for RMSNorm
  ConstView rstd;            // f32 [R]
  ConstView dresidual = {};  // T [R,C], or empty: gradient that bypasses the norm, added to dx
  View dx;                   // T [R,C]; may be dresidual or dy itself
  View dweight;              // f32 [C]
  View dbias = {};           // f32 [C]; empty for RMSNorm
};

// Rope applies rotary positions (Su et al., 2021) in place, with halves rotated as in Hugging
// Face's Llama: out1 = x1 cos - x2 sin; out2 = x2 cos + x1 sin; angle = position *
// inverse_frequency[j].
struct Rope {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t first_position = 0;
  std::int64_t stride = 0;      // elements from one token to the next
  View x;                       // T, [B,T] rows `stride` apart, each starting with its heads
  ConstView inverse_frequency;  // f32 [D/2]
  bool backward = false;        // rotates by the negative angle
};

// AttentionDropout is the dropout of attention's weights (Srivastava et al., 2014; GPT-2 has it
// here, while Vaswani et al., 2017, have it in the residual branches). After the softmax, a weight
// is zeroed with `probability`, or else divided by 1 - probability. The mask of a weight is word
// key % 4 of Philox keyed by (seed, layer, head) at counter (query, step, sample, key / 4). It does
// not depend on which rank computes it, and backward computes it again.
struct AttentionDropout {
  float probability = 0;
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t layer = 0;
  std::int64_t first_head = 0;    // number of the call's first head among all ranks' heads
  std::int64_t first_sample = 0;  // number of the call's first sample within the global batch
  // u32 [2] in memory that the kernels read: the step and the first sample, which replace the two
  // above. A recorded call (CUDA graph) repeats with other ones. Null: those above.
  const std::uint32_t* position = nullptr;

  // Return the step and the first sample that hold when the kernel runs.
  constexpr std::uint32_t present_step() const { return position == nullptr ? step : position[0]; }
  constexpr std::uint32_t present_sample() const {
    return position == nullptr ? static_cast<std::uint32_t>(first_sample) : position[1];
  }
  // Returns the Philox seed of a head of this call.
  constexpr std::uint64_t seed_of(std::int64_t head) const {
    const auto number = static_cast<std::uint64_t>(first_head + head);
    return mix64(mix64(seed) ^ ((std::uint64_t{layer} + 1) << 32 | number));
  }
};

// AttentionForward is causal attention; query head h reads key/value head h / (heads / kv_heads).
// The query at time t has position kv_time - time + t: with kv_time > time, the queries are the
// last ones of a longer sequence (key-value cache). The score of a key at position j for a query at
// position i is scale q k + slopes[h] (j - i). Never stores the T x T matrix.
struct AttentionForward {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t kv_time = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  ConstView q;  // T, [B*time] rows q_stride apart, [heads, D] at each row's start
  ConstView k;  // T, [B*kv_batch_rows] rows kv_stride apart, [kv_heads, D] at each row's start
  ConstView v;  // like k
  std::int64_t q_stride = 0;
  std::int64_t kv_stride = 0;
  // Rows from the k of one batch member to the next; at least kv_time.
  std::int64_t kv_batch_rows = 0;
  View out;       // T [B,T,heads*D]
  View lse = {};  // f32 [B,heads,T]: log of the sum of exponentials, for backward; or empty
  AttentionDropout dropout = {};  // only if kv_time == time
  float scale = 0;                // above 0; or 0, which means 1/sqrt(D)
  // f32 [heads], above 0: ALiBi's bias of distant keys (Press et al., Train Short, Test Long,
  // 2022). Empty: no bias.
  ConstView slopes = {};

  double score_scale() const {
    return scale > 0 ? static_cast<double>(scale) : 1 / std::sqrt(static_cast<double>(head_dim));
  }
};

// Preconditions: kv_time == time and kv_batch_rows == time.
struct AttentionBackward {
  AttentionForward forward;  // the arguments of the forward call, whose results are in out and lse
  ConstView dout;            // T [B,T,heads*D]
  View dq;                   // T, strides as in q
  View dk;                   // T, strides as in k
  View dv;                   // T, strides as in v
};

// y = x * mask / (1 - probability). The mask of an element is Philox keyed by `seed` at counter
// (site, step, sample, element / 4), so that it does not depend on which rank computes it. y may be
// x. Backward is the same call on the gradient.
struct Dropout {
  std::int64_t batch = 0;                // samples in this call
  std::int64_t elements_per_sample = 0;  // T*C
  std::int64_t first_sample = 0;         // number of the first sample within the global batch
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;  // number of the dropout layer in the model
  float probability = 0;
  ConstView x;  // T, elements [first_element, first_element + count) of [B, elements_per_sample]
  View y;
  std::int64_t first_element = 0;
  const std::uint32_t* position = nullptr;  // as in AttentionDropout
};

// LossTerms are added to the cross entropy in training. With L = log(sum_i exp(x_i)) over the V
// logits x of a token, and its target t,
//   loss = L - (1 - s) x_t - (s / V) sum_i x_i + z L^2
// where s is label smoothing (Szegedy et al., Rethinking the Inception Architecture, 2016; defined
// as in PyTorch's cross_entropy) and z is the weight of the z-loss, which keeps L near 0 (Chowdhery
// et al., PaLM, 2022, section 5). The gradient with respect to x_i is
//   (1 + 2 z L) softmax(x)_i - (1 - s) [i = t] - s / V
struct LossTerms {
  float label_smoothing = 0;
  float z_loss = 0;
};

// Sets losses[r] to the loss of row r as in LossTerms, which is -log
// softmax(logits[r,:V])[targets[r]] if both terms are zero. Unless forward_only, also replaces
// logits[r,:] by scale times the loss's gradient.
struct CrossEntropy {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  // Elements from one row of logits to the next; 0: V. What lies between rows is left alone.
  std::int64_t pitch = 0;
  View logits;        // T [R,V]
  ConstView targets;  // i32 [R]; loss and gradients of a row are 0 where it is kIgnoredTarget
  View losses;        // f32 [R]
  float scale = 0;
  bool forward_only = false;
  LossTerms terms = {};

  std::int64_t row() const { return pitch > 0 ? pitch : vocabulary; }
};

// Cross entropy over a vocabulary that ranks divide takes two calls with an all-gather between
// them. The first call computes, for each row of this rank's logits, the maximum, the sum of
// exp(logit - maximum), the logit of the target (0 if another rank holds it), and the sum of the
// logits (0 unless requested).
inline constexpr std::int64_t kRowStatistics = 4;
struct SoftmaxPart {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;  // number of ids that this rank holds
  std::int64_t pitch = 0;       // as in CrossEntropy
  std::int64_t first_id = 0;    // the first of these ids
  ConstView logits;             // T [R,V]
  ConstView targets;            // i32 [R], ids of the whole vocabulary
  View statistics;              // f64 [R,kRowStatistics]
  bool sum_logits = false;      // needed for label smoothing

  std::int64_t row() const { return pitch > 0 ? pitch : vocabulary; }
};
// The second call computes losses and gradients as for CrossEntropy from all ranks' statistics in
// rank order.
struct CrossEntropyOfParts {
  CrossEntropy own;  // vocabulary and logits of this rank; targets are ids of the whole vocabulary
  std::int64_t first_id = 0;
  std::int64_t parts = 1;
  ConstView statistics;               // f64 [parts,R,kRowStatistics]
  std::int64_t whole_vocabulary = 0;  // number of ids of all parts, for label smoothing
};

// Compares each row of logits with that of a teacher (Hinton, Vinyals and Dean, Distilling the
// Knowledge in a Neural Network, 2015, section 2), at temperature T:
//   divergences[r] = KL(p || q) = sum_i p_i (log p_i - log q_i)
//   p = softmax(teacher[r,:V] / T), q = softmax(logits[r,:V] / T)
// Unless forward_only, also replaces teacher[r,:] by scale times the divergence's gradient with
// respect to logits[r,:], which is (q - p) / T.
struct Distillation {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  std::int64_t pitch = 0;  // as in CrossEntropy, of both kinds of logits
  ConstView logits;        // T [R,V]
  View teacher;            // T [R,V]
  ConstView targets;       // i32 [R]; divergence and gradients are 0 where it is kIgnoredTarget
  View divergences;        // f32 [R]
  float temperature = 1;
  float scale = 0;
  bool forward_only = false;

  std::int64_t row() const { return pitch > 0 ? pitch : vocabulary; }
};

// AdamW (Loshchilov and Hutter, 2019) with decoupled decay:
//   g = gradient * gradient_scale; m = beta1 m + (1-beta1) g; v = beta2 v + (1-beta2) g^2
//   value -= lr * ( (m / (1-beta1^t)) / (sqrt(v / (1-beta2^t)) + epsilon) + weight_decay * value )
// As in PyTorch, the decay comes before the step: value *= 1 - lr * weight_decay.
//
// One call updates many parameters that lie one after another, of which some decay and others do
// not: `turns` holds, in ascending order, the elements below n where the decay ends, begins again,
// and so on. Element i decays if an even number of turns is at or before i; without turns, all do.
struct AdamW {
  View value;             // f32 [n]
  View m;                 // f32 [n]
  View v;                 // f32 [n]
  ConstView gradient;     // f32 [n]
  View compute = {};      // bf16 or f16 [n], receives the new value; or empty
  std::int64_t step = 1;  // t, from 1
  float lr = 0;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
  std::span<const std::int64_t> turns = {};  // in the host's memory
  float gradient_scale = 1;                  // from gradient clipping and loss scaling
};

// SGD with momentum and decoupled decay (SGDW of Loshchilov and Hutter, 2019; without decay it
// equals PyTorch's SGD without dampening):
//   g = gradient * gradient_scale; b = momentum * b + g; d = nesterov ? g + momentum * b : b
//   value = (1 - lr * weight_decay) * value - lr * d
// Parameters that do not decay are given as for AdamW.
struct Sgd {
  View value;          // f32 [n]
  View buffer;         // f32 [n], b; zeros before the first step
  ConstView gradient;  // f32 [n]
  View compute = {};   // bf16 or f16 [n], receives the new value; or empty
  float lr = 0;
  float momentum = 0.9F;
  bool nesterov = false;
  float weight_decay = 0;
  std::span<const std::int64_t> turns = {};  // in the host's memory
  float gradient_scale = 1;                  // from gradient clipping and loss scaling
};

// result = a x + b y, all f32 [n]. The result may be x or y; without y it is a x.
struct Combine {
  View result;
  float a = 0;
  ConstView x;
  float b = 0;
  ConstView y = {};
};

// average += (1 - decay) * (value - average), both f32 [n].
struct MovingAverage {
  View average;
  ConstView value;
  float decay = 0;
};

}  // namespace trireme
