#include "src/kernels/cpu/isa/attention.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/score_terms.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Sets scores[i] = exp(scores[i] - highest) and returns their sum. Scores are padded to whole
// vectors with -inf.
float weigh_keys(float* scores, std::int64_t keys, float& highest) {
  Floats most = splat(-__builtin_inff());
  for (std::int64_t i = 0; i < keys; i += kLanes) {
    most = max(most, load(scores + i));
  }
  highest = max_of_lanes(most);
  Floats sum{};
  for (std::int64_t i = 0; i < keys; i += kLanes) {
    const Floats w = exp(load(scores + i) - highest);
    sum += w;
    store(scores + i, w);
  }
  return sum_of_lanes(sum);
}

// Computes one query. q, out: [D]. k, v: [keys] rows, `stride` elements apart.
template <class T>
float decode(T* out, const T* q, const T* k, const T* v, std::int64_t keys, std::int64_t stride,
             std::int64_t depth, const ScoreTerms& terms, float* scores) {
  const float scale = terms.scale;
  for (std::int64_t i = 0; i < keys; ++i) {
    const T* const key = k + i * stride;
    scores[i] = scale * sum_of_vectors(depth, [=](std::int64_t d, auto part) {
                  return load(q + d, part) * load(key + d, part);
                });
  }
  if (terms.slope > 0) {
    const float slope = terms.slope * terms.scale;
    for (std::int64_t i = 0; i < keys; ++i) {
      scores[i] += slope * static_cast<float>(i - (keys - 1));
    }
  }
  const std::int64_t padded = (keys + kLanes - 1) / kLanes * kLanes;
  for (std::int64_t i = keys; i < padded; ++i) {
    scores[i] = -__builtin_inff();
  }
  float highest = 0;
  const float sum = weigh_keys(scores, keys, highest);
  each_vector(depth, [&](std::int64_t d, auto part) {
    Floats total{};
    for (std::int64_t i = 0; i < keys; ++i) {
      total += scores[i] * load(v + i * stride + d, part);
    }
    store(out + d, total / sum, part);
  });
  return highest + __builtin_logf(sum);
}

}  // namespace

void attention_decode(Stream& stream, const AttentionForward& p) {
  const std::int64_t queries = p.batch * p.time * p.heads;
  const int threads = stream.threads();
  const std::int64_t padded = (p.kv_time + kLanes - 1) / kLanes * kLanes;
  auto* const scores = static_cast<float*>(scratch(Scratch::parts, threads * padded * 4));
  by_type(p.q.dtype, [&]<class T>(T) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t h = i % p.heads;
      const std::int64_t t = i / p.heads % p.time;
      const std::int64_t b = i / p.heads / p.time;
      const std::int64_t first =
          b * p.kv_batch_rows * p.kv_stride + h / (p.heads / p.kv_heads) * p.head_dim;
      const float lse =
          decode(as<T>(p.out) + i * p.head_dim,
                 as<T>(p.q) + (b * p.time + t) * p.q_stride + h * p.head_dim, as<T>(p.k) + first,
                 as<T>(p.v) + first, p.kv_time - p.time + t + 1, p.kv_stride, p.head_dim,
                 ScoreTerms(p, h), scores + omp_get_thread_num() * padded);
      if (!p.lse.empty()) {
        as<float>(p.lse)[(b * p.heads + h) * p.time + t] = lse;
      }
    }
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
