// DeviceTokens holds the ids of one micro-batch in memory that kernels can read. It refers to the
// host's memory if the device's kernels can read that, and holds a copy otherwise: the only one
// after the host's memory if that is pinned. The code that runs the micro-batch owns it until its
// backward pass has ended.
#pragma once

#include <memory>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

class DeviceTokens {
 public:
  // ids, targets: i32 [B,T] in memory of the host; targets may be empty. `lease` keeps that memory
  // unchanged and alive, and is held as long as this object exists. Memory that is pinned must stay
  // unchanged until the host has waited for the copy, which may be later: then the caller keeps the
  // lease, too. Throws DataError if an id is not below `vocab`, because it would index memory
  // outside the embedding.
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
