#include "tests/kernels/on_device/mirror.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <cuda_runtime.h>

#include "src/base/error.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/device/cuda_device.h"

namespace trireme::testing {
namespace {

constexpr Device kDevice{DeviceKind::cuda, 0};
constexpr std::size_t kMargin = 64;  // bytes before and after each copy
constexpr std::byte kUntouched{0xA5};

void require(cudaError_t outcome, const char* what) {
  if (outcome != cudaSuccess) {
    throw InternalError(fmt::format("{}: {}", what, cudaGetErrorString(outcome)));
  }
}

// Returns pinned memory, through which all copies go.
std::byte* staging(std::size_t bytes) {
  static void* memory = nullptr;
  static std::size_t held = 0;
  if (bytes > held) {
    cudaFreeHost(memory);
    held = std::max(bytes, 2 * held);
    require(cudaMallocHost(&memory, held), "pinned memory");
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

Stream& Mirror::stream() {
  // Never destroyed: at exit, the device may be gone before static objects are.
  static auto* const stream = new Stream(kDevice, 1, cuda::make_queue(kDevice.index));
  return *stream;
}

Mirror::~Mirror() {
  for (const Range& range : ranges_) {
    cudaFree(range.device);
  }
}

void Mirror::add(View& view) {
  if (!view.empty()) {
    views_.push_back(&view);
    add(view.data, view.bytes(), true);
  }
}

void Mirror::add(ConstView& view) {
  if (!view.empty()) {
    const_views_.push_back(&view);
    add(view.data, view.bytes(), false);
  }
}

void Mirror::add(const void* data, std::int64_t bytes, bool changes) {
  auto* const host = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  ranges_.push_back({.host = host, .bytes = static_cast<std::size_t>(bytes), .changes = changes});
}

void Mirror::merge() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return a.host < b.host || (a.host == b.host && a.bytes < b.bytes);
  });
  std::vector<Range> merged;
  for (const Range& range : ranges_) {
    if (!merged.empty() && range.host < merged.back().host + merged.back().bytes) {
      Range& last = merged.back();
      const auto end = static_cast<std::size_t>(range.host - last.host) + range.bytes;
      last.bytes = std::max(last.bytes, end);
      last.changes = last.changes || range.changes;
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

std::byte* Mirror::copy_of(const void* data) const {
  const auto* const host = static_cast<const std::byte*>(data);
  for (const Range& range : ranges_) {
    if (host == range.host || (host > range.host && host < range.host + range.bytes)) {
      return range.device + range.offset + (host - range.host);
    }
  }
  throw InternalError("a view lies within a range");
}

void Mirror::transfer(const Range& range, bool to_device) {
  const std::size_t bytes = range.offset + range.bytes + kMargin;
  std::byte* const through = staging(bytes);
  const cudaStream_t stream = cuda::cuda_stream(Mirror::stream());
  if (to_device) {
    std::memset(through, static_cast<int>(kUntouched), bytes);
    std::memcpy(through + range.offset, range.host, range.bytes);
    require(cudaMemcpyAsync(range.device, through, bytes, cudaMemcpyHostToDevice, stream),
            "upload");
    require(cudaStreamSynchronize(stream), "upload");
    return;
  }
  require(cudaMemcpyAsync(through, range.device, bytes, cudaMemcpyDeviceToHost, stream),
          "download");
  require(cudaStreamSynchronize(stream), "download");
  const auto untouched = [](std::byte b) { return b == kUntouched; };
  if (!std::all_of(through, through + range.offset, untouched) ||
      !std::all_of(through + range.offset + range.bytes, through + bytes, untouched)) {
    throw InternalError("a kernel wrote outside its views");
  }
  if (range.changes) {
    std::memcpy(range.host, through + range.offset, range.bytes);
  } else if (std::memcmp(range.host, through + range.offset, range.bytes) != 0) {
    throw InternalError("a kernel changed what it should only read");
  }
}

void Mirror::upload() {
  merge();
  for (Range& range : ranges_) {
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(range.host) % 16;
    range.offset = kMargin + (placement_ == Placement::as_on_host ? shift : 0);
    void* memory = nullptr;
    require(cudaMalloc(&memory, range.offset + range.bytes + kMargin), "device memory");
    range.device = static_cast<std::byte*>(memory);
    transfer(range, true);
  }
  for (View* view : views_) {
    view->data = copy_of(view->data);
    view->device = kDevice;
  }
  for (ConstView* view : const_views_) {
    view->data = copy_of(view->data);
    view->device = kDevice;
  }
}

void Mirror::download() {
  require(cudaStreamSynchronize(cuda::cuda_stream(stream())), "a kernel failed");
  for (const Range& range : ranges_) {
    transfer(range, false);
  }
}

}  // namespace trireme::testing
