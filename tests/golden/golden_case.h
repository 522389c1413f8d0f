// Loads the files with PyTorch's values, for the tests that compare with them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/device/dtype.h"
#include "src/nn/model_config.h"

namespace trireme {

// Returns where the files are: in TRIREME_GOLDEN, or else in the source tree.
inline std::filesystem::path golden_folder() {
  const char* const folder = std::getenv("TRIREME_GOLDEN");
  return folder == nullptr ? std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden"
                           : std::filesystem::path(folder);
}

// Returns the names of this program's kernel tables: those of the CPU, or "cuda".
std::vector<std::string> golden_tables();
// Returns those of them that have fp16 kernels.
std::vector<std::string> golden_f16_tables();

struct GoldenTolerance {
  double loss;      // relative
  double gradient;  // of the difference's norm over the norm
};
inline GoldenTolerance golden_tolerance(DType compute) {
  return compute == DType::f32   ? GoldenTolerance{1e-5, 1e-4}
         : compute == DType::f16 ? GoldenTolerance{3e-3, 3e-3}
                                 : GoldenTolerance{2e-2, 2e-2};
}

inline ModelConfig golden_config(const nlohmann::json& j) {
  ModelConfig c;
  c.family = parse_family(j.at("family").get<std::string>());
  c.layers = j.at("layers");
  c.hidden = j.at("hidden");
  c.heads = j.at("heads");
  c.kv_heads = j.at("kv_heads");
  c.head_dim = j.at("head_dim");
  c.ffn = j.at("ffn");
  c.vocab = j.at("vocab");
  c.context = j.at("context");
  c.tie_embeddings = j.at("tie_embeddings");
  c.norm_epsilon = j.at("norm_epsilon");
  c.alibi = j.value("alibi", false);
  c.swiglu = j.value("swiglu", false);
  c.embedding_scale = j.value("embedding_scale", c.embedding_scale);
  c.logit_scale = j.value("logit_scale", c.logit_scale);
  c.attention_scale = j.value("attention_scale", c.attention_scale);
  c.rope_theta = j.value("rope_theta", c.rope_theta);
  if (j.contains("rope_scaling")) {
    const nlohmann::json& s = j["rope_scaling"];
    c.rope_scaling = {s.at("factor"), s.at("low_freq_factor"), s.at("high_freq_factor"),
                      s.at("original_context")};
  }
  c.validate();
  return c;
}

}  // namespace trireme
