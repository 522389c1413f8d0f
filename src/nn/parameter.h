// ParameterStore lists the parameters of a model, or of the part of one that a rank holds, and
// their working copies, with which the layers multiply (bf16 or f32). All parameters have a range
// in one flat numbering, in model order (embeddings, layers from the first to the last, output).
// Each begins at a multiple of kSumBlock elements unless it is joined to the one before; the gaps
// are zero. Gradient buckets, optimizer shards and checkpoints are ranges of this numbering.
// MasterWeights holds the f32 master weights. Owned by the engine or tool that builds the model;
// one thread.
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
  float deviation = 0;  // standard deviation of the normal distribution around 0
};

struct Parameter {
  std::string name;  // Hugging Face's name, such as transformer.h.0.attn.c_attn.weight
  Place place;       // the part of the logical tensor that this rank holds
  Initializer initializer;
  bool decays = false;      // whether weight decay applies, as it does to matrices
  bool hidden = false;      // a matrix inside a layer (no embedding or head), which Muon can update
  bool joined = false;      // follows the parameter before it without a gap: parts of one matrix
  bool trained = true;      // false: a copy whose gradient and update another rank computes
  bool frozen = false;      // keeps the values that it was loaded with; not trained either
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

  // Declares one more parameter, before the working copies have a place.
  ParameterId add(Parameter parameter);
  // Allocates all working copies in one buffer, as zeros. The alternative is place(), with memory
  // that the caller owns.
  void allocate();
  // Sets where the working copies of [first, end) are: `working_copies` holds the flat elements
  // from the first one of `first` on. If it is empty, they are not in memory for now.
  void place(ParameterId first, ParameterId end, const View& working_copies);

  // Allocates the working copies of some parameters as zeros, where the allocate() above does so
  // for all. kept: by ParameterId; of parameters that are joined, all or none.
  void allocate(const std::vector<bool>& kept);
  // Returns the bytes of the working copies that are in memory.
  std::int64_t working_bytes() const;

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& operator[](ParameterId id) const {
    return parameters_[static_cast<std::size_t>(id)];
  }
  int count() const { return static_cast<int>(parameters_.size()); }
  // Returns the end of the joined parameters that begin with `first`, without gaps between them.
  ParameterId end_of_joined(ParameterId first) const;
  // Returns the parameters' indices in the bytewise order of their names, which is the order of
  // sums and digests.
  std::vector<ParameterId> ids_by_name() const;
  // Return the number of elements of a flat buffer, gaps included, and of the parameters alone.
  std::int64_t flat_elements() const { return flat_elements_; }
  std::int64_t parameter_elements() const;
  // Returns the number of elements of `count` parameters joined from `first` on.
  std::int64_t joined_elements(ParameterId first, int count) const;

  DeviceContext& context() const { return context_; }
  DType compute_dtype() const { return compute_dtype_; }
  // Returns the working copies of all parameters, [flat_elements]; only after allocate().
  View working_copies() const { return working_copies_.view(); }
  // Returns the working copy of a parameter. Throws InternalError if it is not in memory.
  View compute(ParameterId id) const { return compute(id, 1); }
  // Returns the working copies of `count` parameters joined from `first` on, as one range.
  View compute(ParameterId first, int count) const;

 private:
  DeviceContext& context_;
  DType compute_dtype_;
  std::vector<Parameter> parameters_;
  std::int64_t flat_elements_ = 0;
  std::vector<void*> where_;  // the working copy of each parameter, or null
  Tensor working_copies_;
  std::vector<Tensor> kept_;  // instead, if some were not allocated
};

}  // namespace trireme
