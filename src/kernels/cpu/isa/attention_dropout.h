// Dropout of attention's weights (kernel_arguments.h, AttentionDropout), one head of one sample:
// the words of a row of weights are made when the row is, in forward and again in backward.
#pragma once

#include "src/kernels/cpu/isa/dropout_words.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

class HeadDropout {
 public:
  static constexpr std::int64_t kGroup = 64;  // keys whose words are made together

  HeadDropout(const AttentionDropout& dropout, std::int64_t batch, std::int64_t head)
      : least(least_kept(dropout.probability)),
        scale(1 / (1 - dropout.probability)),
        key_(philox_key(dropout.seed_of(head))),
        step_(dropout.step),
        sample_(static_cast<std::uint32_t>(dropout.first_sample + batch)) {}

  // words[i]: of a query and key first + i; first is a multiple of 4. Made up to a multiple of
  // kGroup that is `count` or more.
  void words_of(std::int64_t query, std::int64_t first, std::int64_t count,
                std::uint32_t* words) const {
    for (std::int64_t i = 0; i < count; i += kGroup) {
      make_words<kGroup / 4>({static_cast<std::uint32_t>(query), step_, sample_,
                              static_cast<std::uint32_t>((first + i) / 4)},
                             key_, words + i);
    }
  }

  std::uint32_t least;  // for keeps()
  float scale;          // of the weights that stay

 private:
  PhiloxKey key_;
  std::uint32_t step_;
  std::uint32_t sample_;
};

}  // namespace trireme::cpu::TRIREME_ISA
