// DeviceTokens: the ids of one micro-batch where kernels can read them. It refers to the host's
// memory on a device whose kernels read that, and holds a copy elsewhere. Owned by whoever runs the
// micro-batch, until its backward is done.
#pragma once

#include <memory>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

class DeviceTokens {
 public:
  // ids, targets: i32 [B,T] in the host's memory; targets may be empty. `lease` keeps that memory
  // unchanged and alive as long as this object. Throws DataError if an id is not below `vocab`,
  // because it would index memory outside the embedding.
  DeviceTokens(DeviceContext& context, const MicroBatch& host, std::int64_t vocab,
               std::shared_ptr<const void> lease = nullptr);

  const MicroBatch& micro_batch() const { return micro_batch_; }

 private:
  std::shared_ptr<const void> lease_;
  Tensor ids_;
  Tensor targets_;
  MicroBatch micro_batch_;
};

}  // namespace trireme
