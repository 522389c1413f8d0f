#include "src/nn/packed_weights.h"

#include "src/nn/run.h"

namespace trireme {

PackedWeights::PackedWeights(const MasterWeights& masters, const Model& model, int bits,
                             DeviceContext& context) {
  check(bits == 8 || bits == 4, "weights are packed in 8 or 4 bits");
  check(context.device().is_host(), "weights are packed for CPUs alone");
  for (const Source& source : sources_of(masters.store(), model)) {
    pack(source, masters, source.output ? 8 : bits, context);
  }
}

std::vector<PackedWeights::Source> PackedWeights::sources_of(const ParameterStore& store,
                                                             const Model& model) {
  const ModelConfig& config = model.config();
  const bool transposed = config.family != Family::gpt2;
  const std::string_view output =
      config.tie_embeddings ? token_matrix(config.family) : "lm_head.weight";
  std::vector<Source> sources;
  for (ParameterId id = 0; id < store.count();) {
    const ParameterId end = store.end_of_joined(id);
    if (store[id].name == output) {
      sources.push_back({id, 1, true, true});
    } else if (store[id].hidden) {
      sources.push_back({id, end - id, transposed, false});
    }
    id = end;
  }
  return sources;
}

void PackedWeights::pack(const Source& source, const MasterWeights& masters, int bits,
                         DeviceContext& context) {
  const ParameterStore& store = masters.store();
  const std::int64_t elements = store.joined_elements(source.weight, source.weights);
  const Shape shape = store[source.weight].shape();
  Matrix matrix;
  matrix.weights = source.weights;
  matrix.packed.bits = bits;
  matrix.packed.columns = shape[source.transposed ? 1 : 0];
  matrix.packed.rows = elements / matrix.packed.columns;
  matrix.codes = context.state().allocate(matrix.packed.code_bytes());
  matrix.scales = context.state().allocate(matrix.packed.scale_count() * size_of(DType::bf16));
  const View codes = matrix.codes.view(DType::u8);
  const View scales = matrix.scales.view(DType::bf16);
  // The masters of joined parameters follow one another.
  const float* const from = as<float>(masters.value(source.weight));
  pack_matrix(from, source.transposed ? matrix.packed.columns : 1,
              source.transposed ? 1 : matrix.packed.rows, matrix.packed, {codes, scales},
              context.threads());
  matrix.packed.codes = codes;
  matrix.packed.scales = scales;
  kept_[source.weight] = source.output && store[source.weight].name != "lm_head.weight";
  matrices_.emplace(source.weight, std::move(matrix));
}

void PackedWeights::multiply(ParameterId weight, const ConstView& x, const ConstView& bias,
                             const View& y, Run& run) const {
  const Matrix& matrix = matrices_.at(weight);
  packed_kernels(run.kernels()).multiply(run.stream(), matrix.packed, x, bias, y);
}

std::int64_t PackedWeights::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [weight, matrix] : matrices_) {
    bytes += matrix.codes.bytes() + matrix.scales.bytes();
  }
  return bytes;
}

std::vector<bool> PackedWeights::needed(const ParameterStore& store) const {
  std::vector<bool> needed(static_cast<std::size_t>(store.count()), true);
  for (const auto& [weight, matrix] : matrices_) {
    for (ParameterId id = weight; id < weight + matrix.weights; ++id) {
      needed[static_cast<std::size_t>(id)] = kept_.at(weight);
    }
  }
  return needed;
}

}  // namespace trireme
