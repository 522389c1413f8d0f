// Compares the tokens of two datasets: how much a distribution has moved between the data on which
// a model was trained and that which it sees later. Pure functions.
//
// p(t), q(t): the share of token t in the first and in the second dataset.
//
//   divergence       Jensen-Shannon divergence in bits (Lin, 1991): 0 if p = q, 1 if no token is in
//                    both; the mean of KL(p | m) and KL(q | m) with m = (p + q) / 2
//   unseen           the share of the second dataset's tokens that the first one lacks
//   shift of means   |mu_q - mu_p| / sigma_p, where mu is the mean of the tokens' embeddings, and
//                    sigma_p^2 the mean of their squared distance from mu_p
//   Frechet distance |mu_p - mu_q|^2 + sum over channels of (s_p - s_q)^2, where s is the standard
//                    deviation of a channel (Dowson and Landau, 1982, without covariances)
#pragma once

#include <cstdint>
#include <vector>

#include "io/data/token_counts.h"

namespace trireme {

// A token that has moved, with its part of the divergence.
struct MovedToken {
  std::int64_t token = 0;
  double before = 0;  // its share
  double after = 0;
  double bits = 0;
};

struct TokenDrift {
  double divergence = 0;
  double unseen = 0;
  std::vector<MovedToken> moved;  // those with the largest parts, the largest first
};

// Both datasets have the same vocabulary and are not empty. most: of the tokens that are listed.
TokenDrift token_drift(const TokenCounts& before, const TokenCounts& after, std::size_t most);

struct EmbeddingDrift {
  double shift = 0;    // of the means; infinity if all tokens before have one embedding
  double cosine = 0;   // between the means
  double frechet = 0;  // distance
};

// embedding: [vocab, channels], row by row.
EmbeddingDrift embedding_drift(const TokenCounts& before, const TokenCounts& after,
                               const std::vector<float>& embedding);

}  // namespace trireme
