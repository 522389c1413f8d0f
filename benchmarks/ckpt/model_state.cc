#include "benchmarks/ckpt/model_state.h"

#include <algorithm>

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kVocabulary = 128'256;

// A Llama 3 as MLPerf Storage configures it.
struct LlamaShape {
  const char* name;
  std::int64_t layers, hidden, ffn, heads, kv_heads;
  int zero;
  int replicas;
};
constexpr LlamaShape kLlamas[] = {{"llama3-8b", 32, 4096, 14336, 32, 8, 3, 8},
                                  {"llama3-70b", 80, 8192, 28672, 128, 8, 3, 8},
                                  {"llama3-405b", 126, 16384, 53248, 128, 8, 1, 2},
                                  {"llama3-1t", 128, 25872, 98304, 192, 32, 1, 2}};

// Embedding and head; per layer the products of attention, those of the MLP, and two norms.
std::int64_t parameters_of(const LlamaShape& shape) {
  const std::int64_t kv = shape.hidden * shape.kv_heads / shape.heads;
  const std::int64_t layer =
      2 * shape.hidden * (shape.hidden + kv) + 3 * shape.hidden * shape.ffn + 2 * shape.hidden;
  return 2 * kVocabulary * shape.hidden + shape.layers * layer + shape.hidden;
}

struct StateTensor {
  const char* name;
  std::int64_t element_bytes;
  bool weights;
};
constexpr StateTensor kTensors[] = {
    {"weight", 2, true}, {"master", 4, false}, {"moment1", 4, false}, {"moment2", 4, false}};

}  // namespace

std::vector<std::string> model_state_names() {
  std::vector<std::string> names;
  for (const LlamaShape& shape : kLlamas) {
    names.emplace_back(shape.name);
  }
  return names;
}

ModelState find_model_state(const std::string& name) {
  for (const LlamaShape& shape : kLlamas) {
    if (name == shape.name) {
      return {name, parameters_of(shape), shape.layers, shape.zero, shape.replicas};
    }
  }
  throw ConfigError(fmt::format("--size {}: there is no such model", name));
}

int ModelState::replicas_of(int ranks) const {
  if (zero == 3) {
    return ranks;
  }
  return ranks % replicas == 0 ? replicas : 1;
}

std::vector<StatePart> ModelState::parts(std::int64_t bytes, int rank, int ranks) const {
  const std::int64_t elements = std::max<std::int64_t>(bytes / 14 / layers, 1);
  // The first replica's ranks save the weights, unless the replicas share them.
  const int savers = zero == 3 ? ranks : ranks / replicas_of(ranks);
  std::vector<StatePart> parts;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const StateTensor& tensor : kTensors) {
      const int sharers = tensor.weights ? savers : ranks;
      const std::int64_t first = elements * rank / sharers;
      const std::int64_t end = elements * (rank + 1) / sharers;
      if (rank < sharers && end > first) {
        parts.push_back({fmt::format("layer.{:03}.{}", layer, tensor.name), elements, first,
                         end - first, tensor.element_bytes});
      }
    }
  }
  return parts;
}

}  // namespace trireme
