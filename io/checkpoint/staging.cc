#include "io/checkpoint/staging.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/workers.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kHugePageBytes = std::int64_t{2} << 20;

struct Copy {
  const std::byte* from;
  std::int64_t offset;  // in the image
  std::int64_t bytes;
};

// What is neighbours in memory and in the image is copied as one: flat buffers of parameters come
// out as a few long copies.
void add_copy(const Copy& copy, std::vector<Copy>& copies) {
  if (!copies.empty() && copies.back().from + copies.back().bytes == copy.from) {
    copies.back().bytes += copy.bytes;
  } else {
    copies.push_back(copy);
  }
}

// In the order of the image, without gaps.
std::vector<Copy> copies_of(const std::vector<PlacedBlock>& blocks) {
  std::vector<Copy> copies;
  for (const PlacedBlock& block : blocks) {
    const auto* from = static_cast<const std::byte*>(block.data.data);
    const std::int64_t size = size_of(block.data.dtype);
    const std::int64_t row = block.rows.dense() ? block.bytes : block.rows.width * size;
    for (std::int64_t at = 0; at < block.bytes; at += row) {
      add_copy({from + block.rows.at(at / size) * size, block.offset + at, row}, copies);
    }
  }
  return copies;
}

// Copies what of `copies` lies in [begin, end) of the image.
void copy_part(const std::vector<Copy>& copies, std::byte* image, std::int64_t begin,
               std::int64_t end) {
  auto copy = std::partition_point(copies.begin(), copies.end(), [=](const Copy& before) {
    return before.offset + before.bytes <= begin;
  });
  for (; copy != copies.end() && copy->offset < end; ++copy) {
    const std::int64_t first = std::max(copy->offset, begin);
    const std::int64_t last = std::min(copy->offset + copy->bytes, end);
    std::memcpy(image + first, copy->from + (first - copy->offset),
                static_cast<std::size_t>(last - first));
  }
}

}  // namespace

void MappedMemoryTraits::close(Handle memory) { ::munmap(memory.data, memory.bytes); }

PageBuffer::PageBuffer(std::int64_t bytes) {
  const auto size =
      static_cast<std::size_t>(round_up(std::max<std::int64_t>(bytes, 1), kDataAlignment));
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw IoError(fmt::format(
        "cannot allocate {} of memory for a checkpoint: {}; give the run more memory or more ranks",
        format_bytes(bytes), std::strerror(errno)));
  }
  memory_.reset({static_cast<std::byte*>(data), size});
  (void)::madvise(data, size, MADV_HUGEPAGE);
}

void Staging::reserve(std::int64_t image_bytes, int threads) {
  const std::int64_t bytes = round_up(image_bytes, kDataAlignment);
  if (bytes <= buffer_.bytes()) {
    return;
  }
  buffer_ = PageBuffer();
  buffer_ = PageBuffer(bytes);
  touch(buffer_.data(), bytes, threads);
}

void Staging::fill(const ShardPlan& plan, int threads) {
  reserve(plan.bytes, threads);
  fill_image(plan, buffer_.data(), threads);
}

void touch(std::byte* data, std::int64_t bytes, int threads) {
  const std::int64_t pieces = round_up(bytes, kHugePageBytes) / kHugePageBytes;
  parallel_for(threads, pieces, [&](std::int64_t i) {
    const std::int64_t first = i * kHugePageBytes;
    std::memset(data + first, 0, static_cast<std::size_t>(std::min(kHugePageBytes, bytes - first)));
  });
}

void fill_image(const ShardPlan& plan, std::byte* image, int threads) {
  std::memcpy(image, plan.head.data(), plan.head.size());
  std::memset(image + plan.bytes, 0,
              static_cast<std::size_t>(round_up(plan.bytes, kDataAlignment) - plan.bytes));
  const std::vector<Copy> copies = copies_of(plan.blocks);
  const auto begin = static_cast<std::int64_t>(plan.head.size());
  const std::int64_t part = round_up((plan.bytes - begin) / threads + 1, kDataAlignment);
  parallel_for(threads, threads, [&](std::int64_t i) {
    copy_part(copies, image, begin + i * part, std::min(begin + (i + 1) * part, plan.bytes));
  });
}

}  // namespace trireme
