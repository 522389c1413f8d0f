#include "src/interchange/adapter_weights.h"

#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/load/piece.h"
#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/interchange/elements.h"
#include "src/optim/optimizer.h"

namespace trireme {
namespace {

constexpr std::string_view kEndOfA = ".lora_A.weight";
constexpr std::string_view kEndOfB = ".lora_B.weight";
constexpr std::string_view kEndOfWeight = ".weight";

std::string without(const std::string& name, std::string_view end) {
  return name.substr(0, name.size() - end.size());
}

// Returns the transpose of x [rows, columns].
std::vector<float> transpose(const std::vector<float>& x, std::int64_t rows, std::int64_t columns) {
  std::vector<float> result(x.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] = x[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return result;
}

// Reads all tensors of the step that the blocks name, and checks that they are finite numbers.
void load_adapters(const StepFolder& step, const std::vector<TensorBlock>& blocks) {
  check_fits(*step.manifest, blocks, step.path / kManifestName);
  load_step(step.path, *step.manifest, blocks);
  for (const TensorBlock& block : blocks) {
    const float* const x = as<float>(block.data);
    if (const std::int64_t at = first_not_finite(x, block.data.count); at < block.data.count) {
      throw DataError(fmt::format(
          "{}: element {} of {} is {}: the run had diverged, or the checkpoint was changed",
          step.path.string(), at, block.name, x[at]));
    }
  }
}

}  // namespace

AdapterWeights::AdapterWeights(const StepFolder& step, const ModelConfig& model, Weights which)
    : model_(model) {
  const std::string prefix = which == Weights::average ? fmt::format("{}.", kAverageName) : "";
  std::map<std::string, Shape> shapes_of_b;
  std::vector<TensorBlock> blocks;
  const auto add_block = [&](const ModelTensor& tensor, std::vector<float>& elements) {
    elements.resize(static_cast<std::size_t>(tensor.shape.elements()));
    blocks.push_back({prefix + tensor.name, tensor.shape, Extent::whole(tensor.shape),
                      View{elements.data(), std::ssize(elements), DType::f32}});
  };
  for (const ModelTensor& tensor : model_tensors(model)) {
    if (tensor.name.ends_with(kEndOfA)) {
      Adapter& adapter = adapters_[without(tensor.name, kEndOfA)];
      adapter.in = tensor.shape[1];
      add_block(tensor, adapter.a);
    } else if (tensor.name.ends_with(kEndOfB)) {
      const std::string module = without(tensor.name, kEndOfB);
      shapes_of_b[module] = tensor.shape;
      add_block(tensor, adapters_[module].b);
    }
  }
  load_adapters(step, blocks);
  const bool transposed = model.family == Family::gpt2;
  for (auto& [module, adapter] : adapters_) {
    const Shape& shape = shapes_of_b.at(module);
    adapter.out = shape[transposed ? 1 : 0];
    if (transposed) {
      adapter.b = transpose(adapter.b, model.lora.rank, adapter.out);
    }
  }
}

void AdapterWeights::add_to(const ModelTensor& weight, std::int64_t first, std::int64_t count,
                            float* to) const {
  if (!weight.name.ends_with(kEndOfWeight)) {
    return;
  }
  const auto found = adapters_.find(without(weight.name, kEndOfWeight));
  if (found == adapters_.end()) {
    return;
  }
  const Adapter& adapter = found->second;
  const std::int64_t rank = model_.lora.rank;
  const double scale = model_.lora.scale();
  const bool transposed = model_.family == Family::gpt2;
  const std::int64_t columns = transposed ? adapter.out : adapter.in;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = (first + i) / columns;
    const std::int64_t column = (first + i) % columns;
    const std::int64_t out = transposed ? column : row;
    const std::int64_t in = transposed ? row : column;
    double sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      sum += static_cast<double>(adapter.b[static_cast<std::size_t>(out * rank + k)]) *
             static_cast<double>(adapter.a[static_cast<std::size_t>(k * adapter.in + in)]);
    }
    to[i] = static_cast<float>(static_cast<double>(to[i]) + scale * sum);
  }
}

}  // namespace trireme
