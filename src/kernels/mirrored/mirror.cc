#include "src/kernels/mirrored/mirror.h"

#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "src/device/memory_source.h"

namespace trireme {
namespace {

constexpr std::size_t kMargin = 64;  // bytes before and after each copy
constexpr std::byte kUntouched{0xA5};

View bytes_of(std::vector<std::byte>& memory) {
  return {memory.data(), static_cast<std::int64_t>(memory.size()), DType::u8};
}

}  // namespace

std::size_t Mirror::Range::held() const { return offset + bytes + kMargin; }

Mirror::~Mirror() {
  for (const Range& range : ranges_) {
    if (range.device != nullptr) {
      memory_of(stream_.device()).give_back(range.device, static_cast<std::int64_t>(range.held()));
    }
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
  throw InternalError("a view lies outside what its mirror was given");
}

View Mirror::on_device(const Range& range) const {
  return {range.device, static_cast<std::int64_t>(range.held()), DType::u8, stream_.device()};
}

void Mirror::write(const Range& range) {
  std::vector<std::byte> copy(range.held(), kUntouched);
  std::memcpy(copy.data() + range.offset, range.host, range.bytes);
  stream_.copy(on_device(range), bytes_of(copy));
  stream_.synchronize();
}

void Mirror::read(const Range& range) {
  std::vector<std::byte> copy(range.held());
  stream_.copy(bytes_of(copy), on_device(range));
  stream_.synchronize();
  const std::byte* const all = copy.data();
  const std::byte* const begin = all + range.offset;
  const std::byte* const end = begin + range.bytes;
  const auto untouched = [](std::byte b) { return b == kUntouched; };
  if (!std::all_of(all, begin, untouched) || !std::all_of(end, all + copy.size(), untouched)) {
    throw DeviceError("a kernel wrote outside its views");
  }
  if (range.changes) {
    std::memcpy(range.host, begin, range.bytes);
  } else if (std::memcmp(range.host, begin, range.bytes) != 0) {
    throw DeviceError("a kernel changed what it should only read");
  }
}

void Mirror::upload() {
  merge();
  for (Range& range : ranges_) {
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(range.host) % 16;
    range.offset = kMargin + (placement_ == Placement::as_on_host ? shift : 0);
    range.device = static_cast<std::byte*>(
        memory_of(stream_.device()).take(static_cast<std::int64_t>(range.held())));
    write(range);
  }
  for (View* view : views_) {
    view->data = copy_of(view->data);
    view->device = stream_.device();
  }
  for (ConstView* view : const_views_) {
    view->data = copy_of(view->data);
    view->device = stream_.device();
  }
}

void Mirror::download() {
  stream_.synchronize();
  for (const Range& range : ranges_) {
    read(range);
  }
}

}  // namespace trireme
