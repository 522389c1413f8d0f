#include <algorithm>
#include <limits>
#include <vector>

#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

// Query is one query of one head, with the positions of its data.
struct Query {
  std::int64_t q = 0;     // first element of the query in q
  std::int64_t out = 0;   // its first element in out
  std::int64_t lse = 0;   // its index in lse
  std::int64_t kv = 0;    // first element of key 0 of its key/value head in k and v
  std::int64_t keys = 0;  // number of keys that it sees, at positions 0 .. keys-1
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t time = 0;
};

Query query(const AttentionForward& p, std::int64_t batch, std::int64_t head, std::int64_t time) {
  const std::int64_t row = batch * p.time + time;
  const std::int64_t kv_head = head / (p.heads / p.kv_heads);
  return {.q = row * p.q_stride + head * p.head_dim,
          .out = (row * p.heads + head) * p.head_dim,
          .lse = (batch * p.heads + head) * p.time + time,
          .kv = batch * p.kv_batch_rows * p.kv_stride + kv_head * p.head_dim,
          .keys = p.kv_time - p.time + time + 1,
          .batch = batch,
          .head = head,
          .time = time};
}

template <class F>
void each_query(const AttentionForward& p, F f) {
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t head = 0; head < p.heads; ++head) {
      for (std::int64_t time = 0; time < p.time; ++time) {
        f(query(p, batch, head, time));
      }
    }
  }
}

double dot(const ConstView& a, std::int64_t i, const ConstView& b, std::int64_t j, std::int64_t n) {
  double sum = 0;
  for (std::int64_t d = 0; d < n; ++d) {
    sum += at(a, i + d) * at(b, j + d);
  }
  return sum;
}

double score(const AttentionForward& p, const Query& q, std::int64_t key) {
  const double bias =
      p.slopes.empty() ? 0 : at(p.slopes, q.head) * static_cast<double>(key - (q.keys - 1));
  return p.score_scale() * dot(p.q, q.q, p.k, q.kv + key * p.kv_stride, p.head_dim) + bias;
}

// Returns dropout's factor for the weight of a key.
double kept(const AttentionDropout& dropout, const Query& q, std::int64_t key) {
  if (dropout.probability <= 0) {
    return 1;
  }
  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(q.time), dropout.present_step(),
              dropout.present_sample() + static_cast<std::uint32_t>(q.batch),
              static_cast<std::uint32_t>(key / 4)},
             philox_key(dropout.seed_of(q.head)));
  const float drawn = uniform_float(words[static_cast<std::size_t>(key % 4)]);
  return drawn >= dropout.probability ? 1 / (1 - static_cast<double>(dropout.probability)) : 0;
}

void forward_query(const AttentionForward& p, const Query& q) {
  std::vector<double> scores(static_cast<std::size_t>(q.keys));
  double most = -std::numeric_limits<double>::infinity();
  for (std::int64_t key = 0; key < q.keys; ++key) {
    scores[static_cast<std::size_t>(key)] = score(p, q, key);
    most = std::max(most, scores[static_cast<std::size_t>(key)]);
  }
  double sum = 0;
  std::vector<double> weights(scores);
  for (double& weight : weights) {
    weight = std::exp(weight - most);
    sum += weight;
  }
  for (std::int64_t key = 0; key < q.keys; ++key) {
    weights[static_cast<std::size_t>(key)] *= kept(p.dropout, q, key);
  }
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    double mixed = 0;
    for (std::int64_t key = 0; key < q.keys; ++key) {
      mixed += weights[static_cast<std::size_t>(key)] * at(p.v, q.kv + key * p.kv_stride + d);
    }
    put(p.out, q.out + d, mixed / sum);
  }
  if (!p.lse.empty()) {
    put(p.lse, q.lse, most + std::log(sum));
  }
}

// Sums holds the gradient sums in double; they are rounded once at the end.
struct Sums {
  std::vector<double> dq;
  std::vector<double> dk;
  std::vector<double> dv;
};

// Adds one query's contributions, with P = exp(score - lse), dropout's factors Z and D = dout
// out: dv += P Z dout; dS = P (Z dout v - D); dq += scale dS k; dk += scale dS q (Dao et al., 2022,
// appendix B).
void backward_query(const AttentionBackward& b, const Query& q, Sums& sums) {
  const AttentionForward& p = b.forward;
  const double delta = dot(b.dout, q.out, p.out, q.out, p.head_dim);
  for (std::int64_t key = 0; key < q.keys; ++key) {
    const std::int64_t kv = q.kv + key * p.kv_stride;
    const double weight = std::exp(score(p, q, key) - at(p.lse, q.lse));
    const double factor = kept(p.dropout, q, key);
    const double ds =
        p.score_scale() * weight * (factor * dot(b.dout, q.out, p.v, kv, p.head_dim) - delta);
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      sums.dv[static_cast<std::size_t>(kv + d)] += weight * factor * at(b.dout, q.out + d);
      sums.dq[static_cast<std::size_t>(q.q + d)] += ds * at(p.k, kv + d);
      sums.dk[static_cast<std::size_t>(kv + d)] += ds * at(p.q, q.q + d);
    }
  }
}

// Writes only the first `width` elements of each token row; the rest belongs to other tensors.
void put_rows(const View& to, const std::vector<double>& sums, std::int64_t rows,
              std::int64_t stride, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = row * stride; i < row * stride + width; ++i) {
      put(to, i, sums[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace

void attention_forward(Stream&, const AttentionForward& p) {
  each_query(p, [&](const Query& q) { forward_query(p, q); });
}

void attention_backward(Stream&, const AttentionBackward& b) {
  const AttentionForward& p = b.forward;
  const std::int64_t rows = p.batch * p.time;
  Sums sums;
  sums.dq.resize(static_cast<std::size_t>(rows * p.q_stride));
  sums.dk.resize(static_cast<std::size_t>(rows * p.kv_stride));
  sums.dv.resize(sums.dk.size());
  each_query(p, [&](const Query& q) { backward_query(b, q, sums); });
  put_rows(b.dq, sums.dq, rows, p.q_stride, p.heads * p.head_dim);
  put_rows(b.dk, sums.dk, rows, p.kv_stride, p.kv_heads * p.head_dim);
  put_rows(b.dv, sums.dv, rows, p.kv_stride, p.kv_heads * p.head_dim);
}

}  // namespace trireme::reference
