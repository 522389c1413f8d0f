// Choosing the next token from logits. A pure function of logits, options and position: the same
// seed gives the same text whatever was drawn before.
#pragma once

#include <cstdint>
#include <span>

namespace trireme {

struct SamplingOptions {
  double temperature = 1;  // 0: always the most likely token
  std::int64_t top_k = 0;  // keep the k most likely; 0: all
  double top_p = 1;        // keep the least set whose probability reaches p (Holtzman et al., 2020)
  std::uint64_t seed = 0;
  // ConfigError for values that mean nothing.
  void validate() const;
};

// logits: [V]; position: that of the token to be drawn within its sequence. Equal logits are
// ordered by id. Throws DataError if no logit is a number.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          std::int64_t position);

}  // namespace trireme
