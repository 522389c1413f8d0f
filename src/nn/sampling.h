// Chooses the next token from logits: a pure function of logits, options and position, so that the
// same seed gives the same text whatever was drawn before.
#pragma once

#include <cstdint>
#include <span>

namespace trireme {

struct SamplingOptions {
  double temperature = 1;  // 0 means always the most likely token
  std::int64_t top_k = 0;  // number of most likely tokens to keep; 0: all
  double top_p = 1;        // keep the smallest set with probability >= p (Holtzman et al., 2020)
  std::uint64_t seed = 0;
  // Throws ConfigError for values out of range.
  void validate() const;
};

// logits: [V]; position: that of the token to be drawn, in its sequence. Equal logits are ordered
// by id. Throws DataError if all logits are NaN.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          std::int64_t position);

}  // namespace trireme
