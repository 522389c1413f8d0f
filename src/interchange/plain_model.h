// Computes the logits of a GPT-2, Jais or Llama model in the plainest way: in double, with one loop
// per formula, from weights that are read one tensor at a time. It shares no code with the layers
// and kernels that train, so that importing and exporting can compare with it what they did.
//
// Sources: Radford et al. 2019 and the model of transformers for GPT-2; Touvron et al. 2023, Su et
// al. 2021 (rotary positions) and Shazeer 2020 (SwiGLU) for Llama; Press et al. 2022 (ALiBi) for
// Jais.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/nn/model_config.h"

namespace trireme {

// Returns all elements of a tensor, named and laid out as Hugging Face does it.
using ReadWeight = std::function<std::vector<float>(const std::string& name)>;

// Which channels of a head are rotated together: j and j + D/2, or 2j and 2j + 1.
enum class RotaryPairs : std::uint8_t { halves, neighbours };

// config: complete and valid. ids: from 1 to config.context, each below config.vocab. threads: at
// least 1. Returns the logits after each of them, [ids, config.vocab]. Needs memory for the largest
// tensor.
std::vector<double> plain_logits(const ModelConfig& config, const ReadWeight& read,
                                 std::span<const std::int32_t> ids, int threads,
                                 RotaryPairs pairs = RotaryPairs::halves);

}  // namespace trireme
