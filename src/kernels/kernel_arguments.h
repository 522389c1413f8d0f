// The arguments of the kernels that take more than a few. See kernels.h for the rules they share.
#pragma once

#include <cstdint>

#include "src/base/philox.h"
#include "src/device/device.h"

namespace trireme {

enum class Epilogue : std::uint8_t {
  none,
  gelu,           // aux = the sum before GELU, c = gelu(aux)
  gelu_backward,  // c = the sum * gelu'(aux)
};

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
  bool accumulate = false;  // add to C what it held (f32 C only, no epilogue)
  Epilogue epilogue = Epilogue::none;
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
  // Of a vocabulary shared between ranks: token holds the rows of ids from first_id on, and the
  // rows of `out` whose ids are not among them become zero.
  bool partial = false;
  std::int64_t first_id = 0;
};

// dtoken is added to (the tied output matrix may have left its part there); dposition overwritten:
// rows 0..T-1 hold sums over the batch, later rows zero.
struct EmbeddingBackward {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t channels = 0;
  ConstView dout;        // T [B,T,C]
  ConstView ids;         // i32 [B,T]
  View dtoken = {};      // f32 [V,C], or empty
  View dposition = {};   // f32 [positions,C], or empty
  bool partial = false;  // as above: rows of other ids are left out of dtoken
  std::int64_t first_id = 0;
};

// LayerNorm (Ba et al., 2016) and RMSNorm (Zhang and Sennrich, 2019) over rows. When `residual` is
// given, sum = x + residual is stored and normalized instead of x: the residual add is fused.
struct NormForward {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  float epsilon = 1e-5F;
  ConstView x;              // T [R,C]
  ConstView residual = {};  // T [R,C], or empty
  View sum = {};            // T [R,C], with residual only; may be x or residual itself
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
  ConstView x;               // T [R,C]: what was normalized (x, or sum where there was a residual)
  ConstView weight;          // T [C]
  ConstView mean = {};       // f32 [R]; empty for RMSNorm
  ConstView rstd;            // f32 [R]
  ConstView dresidual = {};  // T [R,C], or empty: added to dx (the gradient that skips the norm)
  View dx;                   // T [R,C]; may be dresidual or dy itself
  View dweight;              // f32 [C]
  View dbias = {};           // f32 [C]; empty for RMSNorm
};

// Rotary positions (Su et al., 2021), halves rotated as in Hugging Face's Llama, in place:
// out1 = x1 cos - x2 sin; out2 = x2 cos + x1 sin; angle = position * inverse_frequency[j].
struct Rope {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t first_position = 0;
  std::int64_t stride = 0;      // elements from one token to the next
  View x;                       // T [B,T] rows of `stride`, heads contiguous at each row's start
  ConstView inverse_frequency;  // f32 [D/2]
  bool backward = false;        // rotate by the negative angle
};

// Dropout of attention's weights (Srivastava et al., 2014; where Vaswani et al., 2017, leave it to
// the residual branches, GPT-2 has it here, too): after the softmax a weight is zeroed with
// `probability`, or divided by 1 - probability. The mask of a weight is word key % 4 of Philox
// keyed by (seed, layer, head), with counter (query, step, sample, key / 4): independent of who
// computes it, and made again by backward.
struct AttentionDropout {
  float probability = 0;
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t layer = 0;
  std::int64_t first_head = 0;    // number of the call's first head among all ranks' heads
  std::int64_t first_sample = 0;  // number of the call's first sample within the global batch

  // The Philox seed of a head of this call.
  std::uint64_t seed_of(std::int64_t head) const {
    const auto number = static_cast<std::uint64_t>(first_head + head);
    return mix64(mix64(seed) ^ ((std::uint64_t{layer} + 1) << 32 | number));
  }
};

// Causal attention; query head h reads key/value head h / (heads / kv_heads); scale 1/sqrt(D).
// The query of time t has position kv_time - time + t, so that with kv_time > time the queries are
// the last of a longer sequence (a key-value cache). Never stores T x T.
struct AttentionForward {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t kv_time = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  ConstView q;  // T, token rows of q_stride, [heads, D] at each row's start; [B*time] rows
  ConstView k;  // T, token rows of kv_stride, [kv_heads, D]; [B*kv_batch_time] rows
  ConstView v;  // like k
  std::int64_t q_stride = 0;
  std::int64_t kv_stride = 0;
  std::int64_t kv_batch_rows = 0;  // token rows from one batch member's k to the next; >= kv_time
  View out;                        // T [B,T,heads*D]
  View lse = {};  // f32 [B,heads,T]: log of the sum of exponentials, for backward; or empty
  AttentionDropout dropout = {};  // training shapes only: kv_time == time
};

// Training shapes only: kv_time == time, kv_batch_rows == time.
struct AttentionBackward {
  AttentionForward forward;  // as it was called; out and lse hold its results
  ConstView dout;            // T [B,T,heads*D]
  View dq;                   // T, strides as q
  View dk;                   // T, strides as k
  View dv;                   // T, strides as v
};

// y = x * mask / (1 - probability). The mask of an element is Philox keyed by `seed`, with counter
// (site, step, sample, element / 4): independent of who computes it. y may be x. Backward is the
// same call on the gradient.
struct Dropout {
  std::int64_t batch = 0;              // samples in this call
  std::int64_t elements_a_sample = 0;  // T*C
  std::int64_t first_sample = 0;       // number of the first sample within the step's global batch
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;  // which dropout of the model
  float probability = 0;
  ConstView x;  // T, elements [first_element, first_element + count) of [B, elements_a_sample]
  View y;
  std::int64_t first_element = 0;
};

// What is added to a cross entropy while training. With L = log(sum_i exp(x_i)) over the V logits
// of a token and its target t,
//   loss = L - (1 - s) x_t - (s / V) sum_i x_i + z L^2
// where s is label smoothing (Szegedy et al., Rethinking the Inception Architecture, 2016; as
// PyTorch's cross_entropy defines it) and z the weight of the z-loss, which keeps L near 0
// (Chowdhery et al., PaLM, 2022, section 5). Its gradient by x_i is
//   (1 + 2 z L) softmax(x)_i - (1 - s) [i = t] - s / V
struct LossTerms {
  float label_smoothing = 0;
  float z_loss = 0;
};

// losses[r] = the loss of LossTerms, which without its terms is -log
// softmax(logits[r,:V])[targets[r]]; and, in place, logits[r,:] = its gradient * scale, unless
// forward_only.
struct CrossEntropy {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  View logits;        // T [R,V]
  ConstView targets;  // i32 [R]
  View losses;        // f32 [R]
  float scale = 0;
  bool forward_only = false;
  LossTerms terms = {};
};

// Cross entropy over a vocabulary that ranks share, in two calls with an exchange between them.
// First, of each row of this rank's logits: the maximum, the sum of exp(logit - maximum), the logit
// of the target (0 where another rank has it), and the sum of the logits (0 unless it is asked
// for).
inline constexpr std::int64_t kRowStatistics = 4;
struct SoftmaxPart {
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;  // ids that this rank holds
  std::int64_t first_id = 0;    // the first of them
  ConstView logits;             // T [R,V]
  ConstView targets;            // i32 [R], ids of the whole vocabulary
  View statistics;              // f64 [R,kRowStatistics]
  bool sum_logits = false;      // for label smoothing
};
// Then losses and gradients as of CrossEntropy, from all ranks' statistics, taken in rank order.
struct CrossEntropyOfParts {
  CrossEntropy own;  // vocabulary and logits: this rank's; targets: ids of the whole vocabulary
  std::int64_t first_id = 0;
  std::int64_t parts = 1;
  ConstView statistics;               // f64 [parts,R,kRowStatistics]
  std::int64_t whole_vocabulary = 0;  // ids of all parts together, for label smoothing
};

// AdamW (Loshchilov and Hutter, 2019), decoupled decay:
//   g = gradient * gradient_scale; m = beta1 m + (1-beta1) g; v = beta2 v + (1-beta2) g^2
//   value -= lr * ( (m / (1-beta1^t)) / (sqrt(v / (1-beta2^t)) + epsilon) + weight_decay * value )
// PyTorch's order of decay first, then the step: value *= 1 - lr * weight_decay.
struct AdamW {
  View value;             // f32 [n]
  View m;                 // f32 [n]
  View v;                 // f32 [n]
  ConstView gradient;     // f32 [n]
  View compute = {};      // bf16 [n] copy of the new value, or empty
  std::int64_t step = 1;  // t, from 1
  float lr = 0;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
  float gradient_scale = 1;  // clipping
};

// SGD with momentum and decoupled decay (SGDW of Loshchilov and Hutter, 2019; without decay the
// same as PyTorch's SGD with no dampening):
//   g = gradient * gradient_scale; b = momentum * b + g; d = nesterov ? g + momentum * b : b
//   value = (1 - lr * weight_decay) * value - lr * d
struct Sgd {
  View value;          // f32 [n]
  View buffer;         // f32 [n], b: zeros before the first step
  ConstView gradient;  // f32 [n]
  View compute = {};   // bf16 [n] copy of the new value, or empty
  float lr = 0;
  float momentum = 0.9F;
  bool nesterov = false;
  float weight_decay = 0;
  float gradient_scale = 1;  // clipping
};

// average += (1 - decay) * (value - average), both f32 [n].
struct MovingAverage {
  View average;
  ConstView value;
  float decay = 0;
};

}  // namespace trireme
