// DeviceTokens holds the ids of one micro-batch in memory that kernels can read. It refers to the
// host's memory if the device's kernels can read that, and holds a copy otherwise. The code that
// runs the micro-batch owns it until its backward pass has ended.
#pragma once

#include <memory>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

class DeviceTokens {
 public:
  // ids, targets: i32 [B,T] in the host's ordinary memory; targets may be empty. `lease` keeps that
  // memory unchanged and alive; it is held as long as kernels may read it. Throws DataError if an
  // id is not below `vocab`, because it would index memory outside the embedding.
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
