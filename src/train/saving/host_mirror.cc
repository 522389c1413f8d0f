#include "src/train/saving/host_mirror.h"

#include <algorithm>

#include "src/device/cuda_device.h"

namespace trireme {

HostMirror::HostMirror(DeviceContext& context) : context_(context) {
  if (copies()) {
    stream_ = std::make_unique<Stream>(
        context.device(), 1, cuda::make_queue(context.device().index, cuda::QueueUse::copies));
  }
}

// Blocks may overlap where their rows alternate in memory, so that spans are merged; those that
// touch each other are, too, where one copy can have both.
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
    const std::int64_t gap =
        merged.empty() ? 1 : span.device - (merged.back().device + merged.back().bytes);
    if (gap < 0 || (gap == 0 && cuda::is_one_allocation(merged.back().device,
                                                        merged.back().bytes + span.bytes))) {
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
    memory_ = context_.staging().allocate(bytes);
  }
  char* at = static_cast<char*>(memory_.data());
  for (Span& span : spans_) {
    span.host = at;
    at += span.bytes;
  }
}

HostMirror::Copy HostMirror::start(const std::vector<TensorBlock>& blocks) {
  if (!copies()) {
    return {blocks, {}, nullptr};
  }
  last_.wait();  // its memory may be freed
  last_ = {};    // whose event CUDA has made already
  cover(blocks);
  stream_->wait(context_.stream().record());
  for (const Span& span : spans_) {
    stream_->copy({span.host, span.bytes, DType::u8},
                  ConstView(span.device, span.bytes, DType::u8, context_.device()));
  }
  last_ = stream_->record();
  return {on_host(blocks), last_, [done = last_] { done.wait(); }};
}

std::vector<TensorBlock> HostMirror::fetch(const std::vector<TensorBlock>& blocks) {
  Copy copy = start(blocks);
  copy.done.wait();
  return std::move(copy.blocks);
}

std::vector<TensorBlock> HostMirror::on_host(const std::vector<TensorBlock>& blocks) const {
  std::vector<TensorBlock> on_host = blocks;
  for (TensorBlock& block : on_host) {
    auto* const data = static_cast<char*>(block.data.data);
    const auto past = std::upper_bound(spans_.begin(), spans_.end(), data,
                                       [](const char* at, const Span& s) { return at < s.device; });
    if (past != spans_.begin()) {
      const Span& span = *(past - 1);
      block.data.data = span.host + (data - span.device);
    }
    block.data.device = Device::cpu();
  }
  return on_host;
}

void HostMirror::store() {
  if (!copies()) {
    return;
  }
  for (const Span& span : spans_) {
    context_.stream().copy({span.device, span.bytes, DType::u8, context_.device()},
                           ConstView(span.host, span.bytes, DType::u8));
  }
  context_.stream().synchronize();
}

}  // namespace trireme
