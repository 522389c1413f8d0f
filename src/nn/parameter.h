// ParameterStore: the parameters of a model, or of the part of one that a rank holds, and where
// their computes lie: bf16 or f32, what the layers multiply with. All have a place in one flat
// numbering, one behind the other in model order (embeddings, layers from the first to the last,
// output), each at a multiple of kSumBlock elements unless it is joined to the one before: gradient
// buckets, optimizer shards and checkpoints are plain ranges of it. The gaps are zero. The f32
// masters are MasterWeights'.
#pragma once

#include <string>
#include <vector>

#include "src/compute/device_context.h"
#include "src/tensor/place.h"
#include "src/tensor/tensor.h"

namespace trireme {

struct Initializer {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float deviation = 0;  // of the normal distribution around 0
};

struct Parameter {
  std::string name;  // Hugging Face's: transformer.h.0.attn.c_attn.weight
  Place place;       // the part of the logical tensor that lies here
  Initializer initializer;
  bool decays = false;      // whether weight decay applies: matrices only
  bool hidden = false;      // a matrix inside a layer, no embedding or head: what Muon is for
  bool joined = false;      // lies without a gap behind the one before: parts of one matrix
  bool trained = true;      // false: a copy; another rank has the gradient and makes the update
  std::int64_t offset = 0;  // first element in the flat buffers
  Shape shape() const { return place.shape(); }
  std::int64_t elements() const { return shape().elements(); }
};

// An index into the store, valid for its lifetime.
using ParameterId = int;

class ParameterStore {
 public:
  ParameterStore(DeviceContext& context, DType compute)
      : context_(context), compute_dtype_(compute) {}

  // Before the computes have a place: declares one more parameter.
  ParameterId add(Parameter parameter);
  // Computes of all in one buffer, zeros. Or they are somebody else's, who says where they lie.
  void allocate();
  // `computes` holds the flat elements from that of `first` on, with all of [first, end). Empty:
  // they are nowhere for now.
  void place(ParameterId first, ParameterId end, const View& computes);

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
  // Of `count` parameters joined from `first` on.
  std::int64_t joined_elements(ParameterId first, int count) const;

  DeviceContext& context() const { return context_; }
  DType compute_dtype() const { return compute_dtype_; }
  // Of all, [flat_elements]; after allocate().
  View computes() const { return computes_.view(); }
  // InternalError while they are nowhere.
  View compute(ParameterId id) const { return compute(id, 1); }
  // Of `count` parameters joined from `first` on.
  View compute(ParameterId first, int count) const;

 private:
  DeviceContext& context_;
  DType compute_dtype_;
  std::vector<Parameter> parameters_;
  std::int64_t flat_elements_ = 0;
  std::vector<void*> where_;  // the computes of each parameter
  Tensor computes_;
};

}  // namespace trireme
