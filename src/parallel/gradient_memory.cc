#include "src/parallel/gradient_memory.h"

#include <algorithm>

namespace trireme {
namespace {

std::vector<IndexRange> gaps_of(const ZeroLayout& layout, int b) {
  const GradientBucket& bucket = layout.bucket(b);
  std::vector<IndexRange> gaps;
  std::int64_t at = 0;
  const auto skip_to = [&](std::int64_t next) {
    if (next > at) {
      gaps.push_back({at, next - at});
    }
  };
  for (ParameterId id = bucket.begin; id < bucket.end; ++id) {
    const Parameter& parameter = layout.parameters()[id];
    skip_to(parameter.offset - bucket.first);
    at = parameter.offset - bucket.first + parameter.elements();
  }
  skip_to(layout.padded(b));
  return gaps;
}

}  // namespace

GradientMemory::GradientMemory(const ZeroLayout& layout, const ZeroTools& tools)
    : layout_(layout), tools_(tools) {
  for (int b = 0; b < layout.buckets(); ++b) {
    gaps_.push_back(gaps_of(layout, b));
  }
}

Buffer GradientMemory::allocate_whole(int bucket) {
  return counted(
      tools_.context.exchange_state().allocate(layout_.padded(bucket) * size_of(DType::f32)),
      Kind::whole);
}

Buffer GradientMemory::take_whole(int bucket) {
  Buffer buffer = allocate_whole(bucket);
  clear_gaps(bucket, buffer.view(DType::f32), tools_.context);
  return buffer;
}

Buffer GradientMemory::copy_whole(int bucket, const ConstView& values) {
  Buffer buffer = allocate_whole(bucket);
  tools_.context.stream().copy(buffer.view(DType::f32), values);
  return buffer;
}

void GradientMemory::clear_gaps(int bucket, const View& whole, DeviceContext& context) const {
  for (const IndexRange& gap : gaps_[static_cast<std::size_t>(bucket)]) {
    context.kernels().fill(context.stream(), whole.slice(gap.first, gap.count), 0);
  }
}

Buffer GradientMemory::take_block(int bucket) {
  return counted(tools_.context.state().allocate(layout_.block(bucket) * size_of(DType::f32)),
                 Kind::block);
}

Buffer GradientMemory::counted(Buffer buffer, Kind kind) {
  Count& count = count_of(kind);
  count.bytes += buffer.bytes();
  count.peak = std::max(count.peak, count.bytes);
  peak_bytes_ = std::max(peak_bytes_, bytes());
  return buffer;
}

void GradientMemory::give_back(Buffer& buffer, Kind kind) {
  count_of(kind).bytes -= buffer.bytes();
  buffer = {};
}

}  // namespace trireme
