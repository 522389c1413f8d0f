// Declares the working memory of attention's backward pass (attention_backward.h): packed operands
// and f32 sums of heads, and the tiles of a thread.
#pragma once

#include "src/kernels/cpu/isa/attention_tiles.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

inline constexpr std::int64_t kBlock = 64;  // queries, and keys, per tile
static_assert(kBlock % kTileRows == 0 && kBlock % kPanel == 0);

// BackwardSizes holds the sizes, in words, of the working memory of one head.
template <class Unit>
struct BackwardSizes {
  explicit BackwardSizes(const AttentionForward& p)
      : time(rounded_up(p.time, kBlock)),
        steps((p.head_dim + Unit::kElements - 1) / Unit::kElements),
        columns(rounded_up(p.head_dim, kLanes)),
        rows(time * steps),
        panels(rounded_up(columns, kPanel) * time / Unit::kElements),
        sums(time * columns) {}
  std::int64_t time, steps, columns;
  std::int64_t rows;    // [time, steps], stored as rows or as panels of the transpose
  std::int64_t panels;  // [time, columns], stored as panels for sums over time
  std::int64_t sums;    // [time, columns] f32
  std::int64_t keys() const { return 2 * rows + panels + 2 * sums; }
  std::int64_t queries() const { return 2 * rows + 2 * panels + sums + 2 * time; }
  std::int64_t tile() const { return 5 * kBlock * kBlock + kPanel * steps; }
};

// KeyWork holds the operands and gradient sums of one key/value head.
template <class Unit>
struct KeyWork {
  KeyWork(Word* at, const BackwardSizes<Unit>& z)
      : keys_across(at),
        values_across(at + z.rows),
        keys(values_across + z.rows),
        dk(reinterpret_cast<float*>(keys + z.panels)),
        dv(dk + z.sums) {}
  Word* keys_across;    // K^T
  Word* values_across;  // V^T
  Word* keys;           // K
  float* dk;            // [time, columns]
  float* dv;
};

// QueryWork holds the operands and gradient sums of one query head.
template <class Unit>
struct QueryWork {
  QueryWork(Word* at, const BackwardSizes<Unit>& z)
      : q_rows(at),
        dout_rows(at + z.rows),
        q(dout_rows + z.rows),
        dout(q + z.panels),
        dq(reinterpret_cast<float*>(dout + z.panels)),
        lse(dq + z.sums),
        delta(lse + z.time) {}
  Word* q_rows;     // Q
  Word* dout_rows;  // dO
  Word* q;          // Q, stored for sums over time
  Word* dout;       // dO, stored for sums over time
  float* dq;        // [time, columns]
  float* lse;       // [time], times log2(e)
  float* delta;     // [time], D in the formulas above
};

// BackwardTile is the working memory of one thread. With f32 words, P and dS share the memory of
// scores and dp.
template <class Unit>
struct BackwardTile {
  explicit BackwardTile(Word* at)
      : scores(reinterpret_cast<float*>(at)),
        dp(scores + kBlock * kBlock),
        weights(Unit::kElements == 1 ? at : at + 2 * kBlock * kBlock),
        ds(Unit::kElements == 1 ? at + kBlock * kBlock : at + 3 * kBlock * kBlock),
        ds_rows(Unit::kElements == 1 ? ds : at + 4 * kBlock * kBlock),
        spare(at + 5 * kBlock * kBlock) {}
  float* scores;  // [queries, keys]
  float* dp;      // [queries, keys]
  Word* weights;  // P as words of pairs along the queries: [queries / elements, keys]
  Word* ds;       // dS in the same form
  Word* ds_rows;  // dS as words of pairs along the keys: [queries, keys / elements]
  Word* spare;    // [kPanel, steps] for packing
};

}  // namespace trireme::cpu::TRIREME_ISA
