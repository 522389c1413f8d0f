// PackedWeights holds the matrices of a model in 8 or 4 bits (src/kernels/packed_kernels.h), for
// generation and evaluation on the CPU: those of the layers, and the output matrix, which always
// has 8 bits. Owned by the code that loads a model; any thread may read it.
#pragma once

#include <map>

#include "src/kernels/packed_kernels.h"
#include "src/nn/master_weights.h"
#include "src/nn/model.h"

namespace trireme {

class PackedWeights {
 public:
  // Packs the masters, which hold the whole store of the model, into memory of the context, which
  // outlives this. bits: 8 or 4.
  PackedWeights(const MasterWeights& masters, const Model& model, int bits, DeviceContext& context);

  bool has(ParameterId weight) const { return matrices_.contains(weight); }
  // y [M,N] = x [M,K] W^T + bias with the matrix of a Linear whose first weight this is. x, bias:
  // T; y: T or f32. bias may be empty.
  void multiply(ParameterId weight, const ConstView& x, const ConstView& bias, const View& y,
                Run& run) const;
  // Returns the bytes of all codes and scales.
  std::int64_t bytes() const;
  // Returns, by ParameterId, whether the working copy is still needed: all parameters but those
  // that are packed. A tied output matrix is, because its rows are the embedding.
  std::vector<bool> needed(const ParameterStore& store) const;

 private:
  struct Matrix {
    PackedMatrix packed;
    int weights = 1;
    Buffer codes;
    Buffer scales;
  };
  struct Source {
    ParameterId weight = 0;
    int weights = 1;
    bool transposed = false;  // whether it is stored [N,K]
    bool output = false;
  };
  static std::vector<Source> sources_of(const ParameterStore& store, const Model& model);
  void pack(const Source& source, const MasterWeights& masters, int bits, DeviceContext& context);

  std::map<ParameterId, Matrix> matrices_;
  std::map<ParameterId, bool> kept_;  // packed, but also needed as it is
};

}  // namespace trireme
