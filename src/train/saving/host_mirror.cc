#include "src/train/saving/host_mirror.h"

#include <algorithm>

#include "src/device/cuda_device.h"

namespace trireme {

HostMirror::HostMirror(DeviceContext& context) : context_(context) {
  if (context.device().kind == DeviceKind::cuda) {
    pool_ = std::make_unique<Pool>(Device{}, cuda::pinned_memory());
  }
}

// Blocks may overlap where their rows alternate in memory, so that spans are merged.
void HostMirror::cover(const std::vector<TensorBlock>& blocks) {
  spans_.clear();
  for (const TensorBlock& block : blocks) {
    if (block.data.count > 0) {
      spans_.push_back({static_cast<char*>(block.data.data), block.data.bytes()});
    }
  }
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.device < b.device; });
  std::vector<Span> merged;
  std::int64_t bytes = 0;
  for (const Span& span : spans_) {
    if (!merged.empty() && span.device <= merged.back().device + merged.back().bytes) {
      Span& last = merged.back();
      const std::int64_t end = std::max(last.bytes, span.device + span.bytes - last.device);
      bytes += end - last.bytes;
      last.bytes = end;
    } else {
      merged.push_back(span);
      bytes += span.bytes;
    }
  }
  spans_ = std::move(merged);
  if (memory_.bytes() < bytes) {
    memory_ = Buffer();
    memory_ = pool_->allocate(bytes);
  }
  char* at = static_cast<char*>(memory_.data());
  for (Span& span : spans_) {
    span.host = at;
    at += span.bytes;
  }
}

void HostMirror::copy(bool to_host) {
  for (const Span& span : spans_) {
    const View device{span.device, span.bytes, DType::u8, context_.device()};
    const View host{span.host, span.bytes, DType::u8};
    if (to_host) {
      context_.stream().copy(host, device);
    } else {
      context_.stream().copy(device, host);
    }
  }
  context_.stream().synchronize();
}

std::vector<TensorBlock> HostMirror::fetch(const std::vector<TensorBlock>& blocks) {
  if (pool_ == nullptr) {
    return blocks;
  }
  cover(blocks);
  copy(true);
  std::vector<TensorBlock> on_host = blocks;
  for (TensorBlock& block : on_host) {
    auto* const data = static_cast<char*>(block.data.data);
    const auto past = std::upper_bound(spans_.begin(), spans_.end(), data,
                                       [](const char* at, const Span& s) { return at < s.device; });
    if (past != spans_.begin()) {
      const Span& span = *(past - 1);
      block.data.data = span.host + (data - span.device);
    }
    block.data.device = Device{};
  }
  return on_host;
}

void HostMirror::store() {
  if (pool_ != nullptr) {
    copy(false);
  }
}

}  // namespace trireme
