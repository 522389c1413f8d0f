// HeadDropout is the dropout of attention's weights (kernel_arguments.h, AttentionDropout) for one
// head of one sample. The random words of a row of weights are computed with the row, in forward
// and again in backward.
#pragma once

#include "src/kernels/cpu/isa/dropout_words.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

class HeadDropout {
 public:
  static constexpr std::int64_t kGroup = 64;  // number of keys whose words are computed together

  HeadDropout(const AttentionDropout& dropout, std::int64_t batch, std::int64_t head)
      : least(least_kept(dropout.probability)),
        scale(1 / (1 - dropout.probability)),
        key_(philox_key(dropout.seed_of(head))),
        step_(dropout.present_step()),
        sample_(dropout.present_sample() + static_cast<std::uint32_t>(batch)) {}

  // Sets words[i] to the word for key first + i, where first is a multiple of 4. Writes `count`
  // words rounded up to a multiple of kGroup.
  void words_of(std::int64_t query, std::int64_t first, std::int64_t count,
                std::uint32_t* words) const {
    for (std::int64_t i = 0; i < count; i += kGroup) {
      make_words<kGroup / 4>({static_cast<std::uint32_t>(query), step_, sample_,
                              static_cast<std::uint32_t>((first + i) / 4)},
                             key_, words + i);
    }
  }

  std::uint32_t least;  // see keeps()
  float scale;          // multiplies the weights that are kept

 private:
  PhiloxKey key_;
  std::uint32_t step_;
  std::uint32_t sample_;
};

}  // namespace trireme::cpu::TRIREME_ISA
