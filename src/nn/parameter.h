// ParameterStore: all parameters of a rank. They lie in flat buffers, one behind the other in model
// order (embeddings, layers from the first to the last, output), each at a multiple of 64 elements
// unless it is joined to the one before: gradient buckets, optimizer shards and checkpoints are
// plain ranges of them. The gaps stay zero.
//
//   values    f32   the master copy that the optimizer updates
//   computes  bf16  what the layers multiply with; with f32 compute it is `values` itself
//   gradients f32   owned by whoever calls bind_gradients (one buffer a micro-batch in flight)
#pragma once

#include <string>
#include <vector>

#include "src/tensor/tensor.h"

namespace trireme {

struct Initializer {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float deviation = 0;  // of the normal distribution around 0
};

struct Parameter {
  std::string name;  // Hugging Face's: transformer.h.0.attn.c_attn.weight
  Shape shape;
  Initializer initializer;
  bool decays = false;      // whether weight decay applies: matrices only
  bool joined = false;      // lies without a gap behind the one before: parts of one matrix
  std::int64_t offset = 0;  // first element in the flat buffers
  std::int64_t elements() const { return shape.elements(); }
};

// An index into the store, valid for its lifetime.
using ParameterId = int;

class ParameterStore {
 public:
  ParameterStore(Pool& pool, DType compute) : pool_(pool), compute_dtype_(compute) {}

  // Before allocate(): declares one more parameter.
  ParameterId add(Parameter parameter);
  void allocate();
  // Sets every value from the counter-based RNG keyed by (seed, name, element).
  void initialize(std::uint64_t seed);
  // Makes computes from values; for after a load. The optimizer keeps them in step itself.
  void refresh_computes();

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& operator[](ParameterId id) const {
    return parameters_[static_cast<std::size_t>(id)];
  }
  int count() const { return static_cast<int>(parameters_.size()); }
  // The parameters' indices in the bytewise order of their names: the order of sums and digests.
  std::vector<ParameterId> ids_by_name() const;
  // Elements of a flat buffer, gaps included; and of the parameters alone.
  std::int64_t flat_elements() const { return flat_elements_; }
  std::int64_t parameter_elements() const;

  Pool& pool() const { return pool_; }
  DType compute_dtype() const { return compute_dtype_; }
  View values() const { return values_.view(); }
  View computes() const { return compute_dtype_ == DType::f32 ? values_.view() : computes_.view(); }
  View value(ParameterId id) const { return part(values(), id); }
  View compute(ParameterId id) const { return part(computes(), id); }
  // The buffer that backward writes to: f32 [flat_elements].
  void bind_gradients(View flat) { gradients_ = flat; }
  View gradients() const { return gradients_; }
  View gradient(ParameterId id) const { return part(gradients_, id); }

 private:
  View part(const View& flat, ParameterId id) const {
    return flat.slice((*this)[id].offset, (*this)[id].elements());
  }

  Pool& pool_;
  DType compute_dtype_;
  std::vector<Parameter> parameters_;
  std::int64_t flat_elements_ = 0;
  Tensor values_;
  Tensor computes_;
  View gradients_;
};

}  // namespace trireme
