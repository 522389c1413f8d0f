// Computes attention forward, softmax(scores) V, with the running maximum and sum of
// Milakov and Gimelshein (2018) over blocks of keys, as in FlashAttention (Dao et al., 2022). A
// block of queries is multiplied with one block of keys after another, so that only one block of
// scores exists at a time. Blocks that the causal mask hides completely are skipped. Keys and
// values are packed once for all queries.
#pragma once

#include "src/kernels/cpu/isa/attention_tiles.h"
#include "src/kernels/cpu/isa/head_dropout.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/score_terms.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {

inline constexpr std::int64_t kQueries = 64;  // block of queries
inline constexpr std::int64_t kKeys = 256;    // block of keys
// Lower than any score, but finite, so that differences are numbers.
inline constexpr float kLeastScore = -3e38F;
static_assert(kQueries % kTileRows == 0 && kKeys % kPanel == 0);

// ForwardSizes holds the sizes of the packed operands and of a thread's tiles, in words.
template <class Unit>
struct ForwardSizes {
  explicit ForwardSizes(const AttentionForward& p)
      : steps((p.head_dim + Unit::kElements - 1) / Unit::kElements),
        columns(rounded_up(p.head_dim, kLanes)),
        keys(rounded_up(p.kv_time, kPanel)),
        packed_keys(keys * steps),
        packed_values(rounded_up(columns, kPanel) * keys / Unit::kElements),
        tile(
            rounded_up(kQueries * (steps + kKeys + kKeys / Unit::kElements + columns + 2 + kLanes) +
                           kPanel * steps,
                       kLanes)) {}
  std::int64_t steps, columns, keys, packed_keys, packed_values, tile;
  std::int64_t packed() const { return packed_keys + packed_values; }
};

// ForwardTile is the working memory of one thread.
template <class Unit>
struct ForwardTile {
  ForwardTile(Word* at, const ForwardSizes<Unit>& z)
      : q(at),
        weights(q + kQueries * z.steps),
        scores(reinterpret_cast<float*>(weights + kQueries * kKeys / Unit::kElements)),
        out(scores + kQueries * kKeys),
        most(out + kQueries * z.columns),
        sum(most + kQueries),
        fade(sum + kQueries * kLanes) {}
  Word* q;        // [kQueries, steps]
  Word* weights;  // [kQueries, kKeys] elements
  float* scores;  // [kQueries, kKeys]
  float* out;     // [kQueries, columns], not yet divided by sum
  float* most;    // [kQueries] largest score so far, scaled
  float* sum;     // [kQueries] of exp(score - most)
  float* fade;    // [kQueries] factor for what was accumulated from earlier keys
};

// Computes the weights of one query over a block of keys: weights[i] = 2^(scale scores[i] - most)
// for i < seen, and zero from there up to columns. Updates `most`. Multiplies the lanes of `sum` by
// the returned factor, which corrects for the new maximum, and adds the weights before dropout.
// kept(i, w) returns what dropout leaves of the weights w of the keys from i on.
template <class Unit, class Kept>
TRIREME_INLINE float weigh(const float* scores, typename Unit::Element* weights, std::int64_t seen,
                           std::int64_t columns, float scale, float& most, float* sum, Kept kept) {
  const std::int64_t whole = seen / kLanes * kLanes;
  const auto visible = lane_numbers() < static_cast<std::int32_t>(seen - whole);
  const Floats last = load(scores + least(whole, kKeys - kLanes));
  Floats highest = visible ? last : splat(-__builtin_inff());
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    highest = max(highest, load(scores + i));
  }
  const float before = most;
  const float now = scale * max_of_lanes(highest);
  most = now > before || now != now ? now : before;
  Floats total{};
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const Floats w = exp2(load(scores + i) * scale - most);
    total += w;
    Unit::put(weights + i, kept(i, w));
  }
  if (whole < columns) {
    const Floats w = visible ? exp2(last * scale - most) : Floats{};
    total += w;
    Unit::put(weights + whole, kept(whole, w));
  }
  for (std::int64_t i = whole + kLanes; i < columns; i += kLanes) {
    Unit::put(weights + i, Floats{});
  }
  const Floats fade = before == most ? splat(1.0F) : exp2(splat(before - most));
  store(sum, load(sum) * fade + total);
  return fade[0];
}

// QueryBlock is one block of queries: its number of rows, and the position of its first query among
// the keys.
struct QueryBlock {
  std::int64_t rows;
  std::int64_t position;
};

// dropout: null if all weights are kept.
template <class Unit>
void weigh_block(const ForwardTile<Unit>& tile, const QueryBlock& block, std::int64_t first_key,
                 std::int64_t columns, float scale, const HeadDropout* dropout) {
  auto* const weights = reinterpret_cast<typename Unit::Element*>(tile.weights);
  std::uint32_t words[kKeys];
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const std::int64_t ahead = block.position + r + 1 - first_key;
    const std::int64_t seen = ahead < 0 ? 0 : least(ahead, columns);
    const auto weigh_row = [&](auto kept) {
      tile.fade[r] = weigh<Unit>(tile.scores + r * kKeys, weights + r * kKeys, seen, columns, scale,
                                 tile.most[r], tile.sum + r * kLanes, kept);
    };
    if (dropout == nullptr) {
      weigh_row([](std::int64_t, Floats w) { return w; });
    } else {
      dropout->words_of(block.position + r, first_key, seen, words);
      weigh_row([&, kept_from = dropout->least](std::int64_t i, Floats w) {
        return keeps(words + i, kept_from) ? w : Floats{};
      });
    }
  }
}

template <class Unit>
void fade_block(const ForwardTile<Unit>& tile, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (tile.fade[r] != 1) {
      float* const row = tile.out + r * columns;
      for (std::int64_t i = 0; i < columns; i += kLanes) {
        store(row + i, load(row + i) * tile.fade[r]);
      }
    }
  }
}

// Computes queries [first, first + kQueries) of batch member b and head h.
template <class Unit, class T>
void attend(const AttentionForward& p, const ForwardSizes<Unit>& z, const Word* keys,
            const ForwardTile<Unit>& tile, std::int64_t b, std::int64_t h, std::int64_t first) {
  const QueryBlock block{least(kQueries, p.time - first), p.kv_time - p.time + first};
  const std::int64_t rows = rounded_up(block.rows, kTileRows);
  const ScoreTerms terms(p, h);
  const float scale =
      p.scale > 0 ? kLog2OfE * p.scale : kLog2OfE / __builtin_sqrtf(static_cast<float>(p.head_dim));
  const bool drops = p.dropout.probability > 0;
  const HeadDropout dropout(p.dropout, b, h);
  const Word* const values = keys + z.packed_keys;
  const T* const q = as<T>(p.q) + (b * p.time + first) * p.q_stride + h * p.head_dim;
  pack_rows<Unit>(tile.q, q, p.q_stride, block.rows, rows, p.head_dim);
  for (std::int64_t r = 0; r < rows; ++r) {
    tile.most[r] = kLeastScore;
    store(tile.sum + r * kLanes, Floats{});
  }
  const std::int64_t end = block.position + block.rows;
  for (std::int64_t k0 = 0; k0 < end; k0 += kKeys) {
    const std::int64_t columns = rounded_up(least(kKeys, end - k0), kPanel);
    multiply<Unit>(tile.scores, kKeys, rows, columns, {tile.q, z.steps, 1}, keys + k0 * z.steps,
                   z.steps * kPanel, z.steps, false);
    if (terms.slope > 0) {
      terms.add_bias(tile.scores, kKeys, block.rows, columns, k0 - block.position);
    }
    weigh_block(tile, block, k0, columns, scale, drops ? &dropout : nullptr);
    if (k0 > 0) {
      fade_block(tile, block.rows, z.columns);
    }
    multiply<Unit>(tile.out, z.columns, rows, z.columns, {tile.weights, kKeys / Unit::kElements, 1},
                   values + k0 / Unit::kElements * kPanel, z.keys / Unit::kElements * kPanel,
                   columns / Unit::kElements, k0 > 0);
  }
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* const out = as<T>(p.out) + ((b * p.time + first + r) * p.heads + h) * p.head_dim;
    const float sum = sum_of_lanes(load(tile.sum + r * kLanes));
    const float inverse = (drops ? dropout.scale : 1.0F) / sum;
    each_vector(p.head_dim, [&](std::int64_t i, auto part) {
      store(out + i, load(tile.out + r * z.columns + i) * inverse, part);
    });
    if (!p.lse.empty()) {
      as<float>(p.lse)[(b * p.heads + h) * p.time + first + r] =
          tile.most[r] * kLn2 + __builtin_logf(sum);
    }
  }
}

template <class Unit, class T>
void attention_forward_blocks(Stream& stream, const AttentionForward& p) {
  const ForwardSizes<Unit> z(p);
  const std::int64_t pairs = p.batch * p.kv_heads;
  const std::int64_t blocks = (p.time + kQueries - 1) / kQueries;
  const std::int64_t tasks = p.batch * p.heads * blocks;
  const int threads = stream.threads();
  auto* const packed =
      static_cast<Word*>(scratch(Scratch::parts, (pairs * z.packed() + threads * z.tile) * 4));
#pragma omp parallel num_threads(threads)
  {
    Word* const mine = packed + pairs * z.packed() + omp_get_thread_num() * z.tile;
    const ForwardTile<Unit> tile(mine, z);
    Word* const spare = mine + z.tile - kPanel * z.steps;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const std::int64_t from =
          i / p.kv_heads * p.kv_batch_rows * p.kv_stride + i % p.kv_heads * p.head_dim;
      Word* const to = packed + i * z.packed();
      pack_transposed<Unit>(to, as<T>(p.k) + from, p.kv_stride, p.kv_time, z.keys, p.head_dim,
                            spare);
      pack_plain<Unit>(to + z.packed_keys, as<T>(p.v) + from, p.kv_stride, p.kv_time, z.keys,
                       p.head_dim);
    }
    // The blocks with most keys are started first.
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < tasks; ++i) {
      const std::int64_t b = i % (p.batch * p.heads) / p.heads;
      const std::int64_t h = i % p.heads;
      const std::int64_t pair = b * p.kv_heads + h / (p.heads / p.kv_heads);
      const std::int64_t first = (blocks - 1 - i / (p.batch * p.heads)) * kQueries;
      attend<Unit, T>(p, z, packed + pair * z.packed(), tile, b, h, first);
    }
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
