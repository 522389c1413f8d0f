// HostMirror holds a copy of tensors of a device in the host's memory, from which checkpoints are
// written and into which they are read. If the device's memory is the host's, there is no copy, and
// the functions return the blocks as they are. The memory is pinned and is kept for the next save.
// Owned by TrainingCheckpoints or by one load; one thread; the context outlives it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "io/checkpoint/types.h"
#include "src/compute/device_context.h"

namespace trireme {

class HostMirror {
 public:
  // Copy is a copy of blocks to the host that may be under way.
  struct Copy {
    std::vector<TensorBlock> blocks;  // on the host
    StreamEvent done;                 // the device's memory may change after this
    // Waits for the copy; any thread. Null if there was nothing to copy.
    std::function<void()> ready;
  };

  explicit HostMirror(DeviceContext& context);

  // Starts to copy the blocks' memory to the host, beside the work that is queued later. What the
  // host holds of earlier blocks is lost: nobody may be reading it.
  Copy start(const std::vector<TensorBlock>& blocks);
  // Does the same and waits until the copy has finished. Returns the blocks on the host.
  std::vector<TensorBlock> fetch(const std::vector<TensorBlock>& blocks);
  // Copies everything that the latest fetch() covered back to the device, and waits.
  void store();

 private:
  // Span is a piece of the device's memory that blocks cover without a gap, and its copy.
  struct Span {
    char* device = nullptr;
    std::int64_t bytes = 0;
    char* host = nullptr;
  };
  void cover(const std::vector<TensorBlock>& blocks);
  std::vector<TensorBlock> on_host(const std::vector<TensorBlock>& blocks) const;
  bool copies() const { return context_.device().kind == DeviceKind::cuda; }

  DeviceContext& context_;
  Buffer memory_;
  std::vector<Span> spans_;         // sorted by address
  std::unique_ptr<Stream> stream_;  // for copies to the host; null if there are none
  StreamEvent last_;                // the end of the latest copy
};

}  // namespace trireme
