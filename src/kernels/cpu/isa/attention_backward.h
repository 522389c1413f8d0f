// Computes attention backward (FlashAttention, Dao et al., 2022, algorithm 4): with the log-sum-exp
// L of forward and D_i = sum_d dO_id O_id,
//   P = exp(S - L)   dV = P^T dO   dP = dO V^T   dS = P * (dP - D)   dQ = dS K   dK = dS^T Q
// Dropout's factors Z (0 or 1/(1-p)) make dV = (P * Z)^T dO and dS = P * (Z * dP - D). The
// computation goes tile by tile over blocks of queries and keys; S is scaled when P is
// computed, and dQ and dK are multiplied by the scale at the end. Each element of dQ, dK and dV is
// one chain of additions, over its keys or over heads and queries in order, so the bits depend
// neither on the blocks nor on the threads.
//
// With few threads, a task is one key/value head, at five products per tile. With more threads than
// heads can occupy, dQ and then dK and dV are computed by blocks: seven products per tile, but many
// more tasks.
#pragma once

#include "src/kernels/cpu/isa/attention_backward_work.h"
#include "src/kernels/cpu/isa/head_dropout.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/score_terms.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {

enum class Wanted { all, queries, keys };

// RowTerms is one row of a tile, and computes P and dS from its scores and dP.
struct RowTerms {
  const float* scores;
  const float* dp;
  float lse;
  float delta;
  std::int64_t seen;           // number of the tile's keys that the query sees
  const std::uint32_t* words;  // dropout's random words, one per key
  std::uint32_t least;
  float kept_scale;

  // The weight for dV leaves out dropout's scale, which is applied at the end.
  template <bool diagonal, bool drops>
  TRIREME_INLINE void at(std::int64_t i, float scale, Floats& weight, Floats& ds) const {
    weight = exp2(load(scores + i) * scale - lse);
    if constexpr (diagonal) {
      weight = lane_numbers() < static_cast<std::int32_t>(seen - i) ? weight : Floats{};
    }
    if constexpr (drops) {
      const Ints stays = keeps(words + i, least);
      ds = weight * ((stays ? load(dp + i) * kept_scale : Floats{}) - delta);
      weight = stays ? weight : Floats{};
    } else {
      ds = weight * (load(dp + i) - delta);
    }
  }
};

// Computes P and dS of row r and, if a word holds two elements, of row r + 1.
template <class Unit, bool diagonal, bool drops>
TRIREME_INLINE void weigh_rows(const BackwardTile<Unit>& tile, const RowTerms* rows, std::int64_t r,
                               float scale) {
  const std::int64_t word_row = r / Unit::kElements * kBlock;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < kBlock; i += kLanes) {
    Floats weight[Unit::kElements];
    Floats ds[Unit::kElements];
    rows[0].at<diagonal, drops>(i, scale, weight[0], ds[0]);
    if constexpr (Unit::kElements == 1) {
      store(tile.scores + word_row + i, weight[0]);
      store(tile.dp + word_row + i, ds[0]);
    } else {
      rows[1].at<diagonal, drops>(i, scale, weight[1], ds[1]);
      store_words(tile.weights + word_row + i, Unit::interleaved(weight[0], weight[1]));
      store_words(tile.ds + word_row + i, Unit::interleaved(ds[0], ds[1]));
      auto* const along_keys = reinterpret_cast<typename Unit::Element*>(tile.ds_rows);
      Unit::put(along_keys + r * kBlock + i, ds[0]);
      Unit::put(along_keys + (r + 1) * kBlock + i, ds[1]);
    }
  }
}

// Computes P and dS of the tile at queries q0 and keys k0. diagonal: some keys are later than some
// queries.
template <class Unit, bool diagonal, bool drops>
void weigh_tile(const QueryWork<Unit>& query, const BackwardTile<Unit>& tile, std::int64_t q0,
                std::int64_t k0, float scale, const HeadDropout& dropout) {
  std::uint32_t words[Unit::kElements][drops ? kBlock : 1];
  for (std::int64_t r = 0; r < kBlock; r += Unit::kElements) {
    RowTerms rows[Unit::kElements];
    for (std::int64_t j = 0; j < Unit::kElements; ++j) {
      const std::int64_t t = r + j;
      rows[j] = {tile.scores + t * kBlock,
                 tile.dp + t * kBlock,
                 query.lse[q0 + t],
                 query.delta[q0 + t],
                 q0 + t + 1 - k0,
                 words[j],
                 dropout.least,
                 dropout.scale};
      if constexpr (drops) {
        dropout.words_of(q0 + t, k0, kBlock, words[j]);
      }
    }
    weigh_rows<Unit, diagonal, drops>(tile, rows, r, scale);
  }
}

// HeadTerms holds the parameters that all tiles of a head share.
struct HeadTerms {
  ScoreTerms score;
  const HeadDropout& dropout;
  bool drops;
};

// Adds the contributions of queries [q0, q0 + kBlock) and keys [k0, k0 + kBlock).
template <class Unit>
void backward_tile(const BackwardSizes<Unit>& z, const KeyWork<Unit>& key,
                   const QueryWork<Unit>& query, const BackwardTile<Unit>& tile, std::int64_t q0,
                   std::int64_t k0, const HeadTerms& head, Wanted wanted) {
  const std::int64_t across = z.steps * kPanel;
  const std::int64_t along = z.time / Unit::kElements * kPanel;
  constexpr std::int64_t kSteps = kBlock / Unit::kElements;
  multiply<Unit>(tile.scores, kBlock, kBlock, kBlock, {query.q_rows + q0 * z.steps, z.steps, 1},
                 key.keys_across + k0 * z.steps, across, z.steps, false);
  multiply<Unit>(tile.dp, kBlock, kBlock, kBlock, {query.dout_rows + q0 * z.steps, z.steps, 1},
                 key.values_across + k0 * z.steps, across, z.steps, false);
  if (head.score.slope > 0) {
    head.score.add_bias(tile.scores, kBlock, kBlock, kBlock, k0 - q0);
  }
  const float scale = head.score.scale * kLog2OfE;
  if (head.drops && q0 == k0) {
    weigh_tile<Unit, true, true>(query, tile, q0, k0, scale, head.dropout);
  } else if (head.drops) {
    weigh_tile<Unit, false, true>(query, tile, q0, k0, scale, head.dropout);
  } else if (q0 == k0) {
    weigh_tile<Unit, true, false>(query, tile, q0, k0, scale, head.dropout);
  } else {
    weigh_tile<Unit, false, false>(query, tile, q0, k0, scale, head.dropout);
  }
  if (wanted != Wanted::queries) {
    multiply<Unit>(key.dv + k0 * z.columns, z.columns, kBlock, z.columns, {tile.weights, 1, kBlock},
                   query.dout + q0 / Unit::kElements * kPanel, along, kSteps, true);
    multiply<Unit>(key.dk + k0 * z.columns, z.columns, kBlock, z.columns, {tile.ds, 1, kBlock},
                   query.q + q0 / Unit::kElements * kPanel, along, kSteps, true);
  }
  if (wanted != Wanted::keys) {
    multiply<Unit>(query.dq + q0 * z.columns, z.columns, kBlock, z.columns,
                   {tile.ds_rows, kSteps, 1}, key.keys + k0 / Unit::kElements * kPanel, along,
                   kSteps, true);
  }
}

// Backward holds the data of one call that all of its tasks share.
template <class Unit, class T>
struct Backward {
  explicit Backward(const AttentionBackward& arguments)
      : a(arguments),
        p(arguments.forward),
        z(p),
        group(p.heads / p.kv_heads),
        scale(ScoreTerms(p, 0).scale),
        drops(p.dropout.probability > 0),
        value_scale(drops ? 1 / (1 - p.dropout.probability) : 1.0F) {}

  // These return the offset of element (b, t = 0, h) in arrays laid out like q, k and out.
  std::int64_t at_query(std::int64_t b, std::int64_t h) const {
    return b * p.time * p.q_stride + h * p.head_dim;
  }
  std::int64_t at_key(std::int64_t b, std::int64_t kv) const {
    return b * p.time * p.kv_stride + kv * p.head_dim;
  }
  std::int64_t at_out(std::int64_t b, std::int64_t h) const {
    return (b * p.time * p.heads + h) * p.head_dim;
  }

  HeadTerms terms(std::int64_t head, const HeadDropout& dropout) const {
    return {ScoreTerms(p, head), dropout, drops};
  }

  void pack_keys(const KeyWork<Unit>& key, std::int64_t b, std::int64_t kv, Word* spare) const {
    const T* const k = as<T>(p.k) + at_key(b, kv);
    const T* const v = as<T>(p.v) + at_key(b, kv);
    pack_transposed<Unit>(key.keys_across, k, p.kv_stride, p.time, z.time, p.head_dim, spare);
    pack_transposed<Unit>(key.values_across, v, p.kv_stride, p.time, z.time, p.head_dim, spare);
    pack_plain<Unit>(key.keys, k, p.kv_stride, p.time, z.time, p.head_dim);
    std::memset(key.dk, 0, static_cast<std::size_t>(2 * z.sums) * 4);
  }

  void pack_queries(const QueryWork<Unit>& query, std::int64_t b, std::int64_t h) const {
    const T* const q = as<T>(p.q) + at_query(b, h);
    const T* const out = as<T>(p.out) + at_out(b, h);
    const T* const dout = as<T>(a.dout) + at_out(b, h);
    const std::int64_t stride = p.heads * p.head_dim;
    pack_rows<Unit>(query.q_rows, q, p.q_stride, p.time, z.time, p.head_dim);
    pack_rows<Unit>(query.dout_rows, dout, stride, p.time, z.time, p.head_dim);
    pack_plain<Unit>(query.q, q, p.q_stride, p.time, z.time, p.head_dim);
    pack_plain<Unit>(query.dout, dout, stride, p.time, z.time, p.head_dim);
    std::memset(query.dq, 0, static_cast<std::size_t>(z.sums) * 4);
    for (std::int64_t t = 0; t < z.time; ++t) {
      const bool real = t < p.time;
      // Rows beyond p.time pad the last block. dO is zero there, so any weight will do.
      query.lse[t] = real ? as<float>(p.lse)[(b * p.heads + h) * p.time + t] * kLog2OfE : 0;
      query.delta[t] = !real ? 0 : sum_of_vectors(p.head_dim, [&](std::int64_t i, auto part) {
        return load(dout + t * stride + i, part) * load(out + t * stride + i, part);
      });
    }
  }

  // Stores rows [first, last) of f32 sums, times a factor, to a gradient of type T.
  void put(T* to, std::int64_t stride, const float* sums, float factor, std::int64_t first,
           std::int64_t last) const {
    for (std::int64_t t = first; t < least(last, p.time); ++t) {
      each_vector(p.head_dim, [&](std::int64_t i, auto part) {
        store(to + t * stride + i, load(sums + t * z.columns + i) * factor, part);
      });
    }
  }

  AttentionBackward a;
  AttentionForward p;
  BackwardSizes<Unit> z;
  std::int64_t group;  // query heads per key/value head
  float scale;
  bool drops;
  float value_scale;  // scales dV's sums: dropout's scale
};

// Each task computes one key/value head with its query heads.
template <class Unit, class T>
void backward_by_heads(const Backward<Unit, T>& w, int threads) {
  const std::int64_t words = w.z.keys() + w.z.queries() + w.z.tile();
  const std::int64_t pairs = w.p.batch * w.p.kv_heads;
  auto* const work = static_cast<Word*>(scratch(Scratch::parts, threads * words * 4));
#pragma omp parallel num_threads(threads)
  {
    Word* const mine = work + omp_get_thread_num() * words;
    const KeyWork<Unit> key(mine, w.z);
    const QueryWork<Unit> query(mine + w.z.keys(), w.z);
    const BackwardTile<Unit> tile(mine + w.z.keys() + w.z.queries());
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const std::int64_t b = i / w.p.kv_heads;
      const std::int64_t kv = i % w.p.kv_heads;
      w.pack_keys(key, b, kv, tile.spare);
      for (std::int64_t h = kv * w.group; h < (kv + 1) * w.group; ++h) {
        w.pack_queries(query, b, h);
        const HeadDropout dropout(w.p.dropout, b, h);
        for (std::int64_t k0 = 0; k0 < w.p.time; k0 += kBlock) {
          for (std::int64_t q0 = k0; q0 < w.p.time; q0 += kBlock) {
            backward_tile(w.z, key, query, tile, q0, k0, w.terms(h, dropout), Wanted::all);
          }
        }
        w.put(as<T>(w.a.dq) + w.at_query(b, h), w.p.q_stride, query.dq, w.scale, 0, w.p.time);
      }
      w.put(as<T>(w.a.dk) + w.at_key(b, kv), w.p.kv_stride, key.dk, w.scale, 0, w.p.time);
      w.put(as<T>(w.a.dv) + w.at_key(b, kv), w.p.kv_stride, key.dv, w.value_scale, 0, w.p.time);
    }
  }
}

// The first tasks each compute a block of queries of a head, the later ones a block of keys of a
// key/value head.
template <class Unit, class T>
void backward_by_blocks(const Backward<Unit, T>& w, int threads) {
  const auto& z = w.z;
  const std::int64_t pairs = w.p.batch * w.p.kv_heads;
  const std::int64_t heads = w.p.batch * w.p.heads;
  const std::int64_t blocks = z.time / kBlock;
  auto* const keys = static_cast<Word*>(
      scratch(Scratch::parts, (pairs * z.keys() + heads * z.queries() + threads * z.tile()) * 4));
  Word* const queries = keys + pairs * z.keys();
  const auto key = [=, &z](std::int64_t i) { return KeyWork<Unit>(keys + i * z.keys(), z); };
  const auto query = [=, &z](std::int64_t i) {
    return QueryWork<Unit>(queries + i * z.queries(), z);
  };
#pragma omp parallel num_threads(threads)
  {
    const BackwardTile<Unit> tile(queries + heads * z.queries() + omp_get_thread_num() * z.tile());
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t i = 0; i < pairs; ++i) {
      w.pack_keys(key(i), i / w.p.kv_heads, i % w.p.kv_heads, tile.spare);
    }
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < heads; ++i) {
      w.pack_queries(query(i), i / w.p.heads, i % w.p.heads);
    }
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t i = 0; i < heads * blocks; ++i) {
      const std::int64_t head = i % heads;
      const std::int64_t q0 = (blocks - 1 - i / heads) * kBlock;
      const HeadDropout dropout(w.p.dropout, head / w.p.heads, head % w.p.heads);
      for (std::int64_t k0 = 0; k0 <= q0; k0 += kBlock) {
        backward_tile(z, key(head / w.group), query(head), tile, q0, k0,
                      w.terms(head % w.p.heads, dropout), Wanted::queries);
      }
      w.put(as<T>(w.a.dq) + w.at_query(head / w.p.heads, head % w.p.heads), w.p.q_stride,
            query(head).dq, w.scale, q0, q0 + kBlock);
    }
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < pairs * blocks; ++i) {
      const std::int64_t pair = i % pairs;
      const std::int64_t k0 = i / pairs * kBlock;
      for (std::int64_t head = pair * w.group; head < (pair + 1) * w.group; ++head) {
        const HeadDropout dropout(w.p.dropout, head / w.p.heads, head % w.p.heads);
        for (std::int64_t q0 = k0; q0 < w.p.time; q0 += kBlock) {
          backward_tile(z, key(pair), query(head), tile, q0, k0, w.terms(head % w.p.heads, dropout),
                        Wanted::keys);
        }
      }
      const std::int64_t at = w.at_key(pair / w.p.kv_heads, pair % w.p.kv_heads);
      w.put(as<T>(w.a.dk) + at, w.p.kv_stride, key(pair).dk, w.scale, k0, k0 + kBlock);
      w.put(as<T>(w.a.dv) + at, w.p.kv_stride, key(pair).dv, w.value_scale, k0, k0 + kBlock);
    }
  }
}

template <class Unit, class T>
void attention_backward_blocks(Stream& stream, const AttentionBackward& arguments) {
  const Backward<Unit, T> work(arguments);
  const std::int64_t tasks = work.p.batch * work.p.kv_heads;
  const int threads = stream.threads();
  // Divided by heads, the slowest thread does ceil(tasks / threads) tasks. Divided by blocks, each
  // thread does 7/5 of an even share.
  if (5 * ((tasks + threads - 1) / threads) * threads <= 7 * tasks) {
    backward_by_heads(work, threads);
  } else {
    backward_by_blocks(work, threads);
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
