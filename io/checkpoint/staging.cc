#include "io/checkpoint/staging.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/workers.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kHugePageBytes = std::int64_t{2} << 20;

// Copies the part of `runs` that lies in [begin, end) of the image.
void copy_part(const std::vector<ByteRun>& runs, std::byte* image, std::int64_t begin,
               std::int64_t end) {
  auto run = std::partition_point(runs.begin(), runs.end(), [=](const ByteRun& before) {
    return before.offset + before.bytes <= begin;
  });
  for (; run != runs.end() && run->offset < end; ++run) {
    const std::int64_t first = std::max(run->offset, begin);
    const std::int64_t last = std::min(run->offset + run->bytes, end);
    std::memcpy(image + first, run->memory + (first - run->offset),
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
    throw ResourceError(fmt::format(
        "cannot allocate {} of memory for a checkpoint: {}; give the run more memory or more ranks",
        format_bytes(bytes), std::strerror(errno)));
  }
  memory_.reset({static_cast<std::byte*>(data), size});
  (void)::madvise(data, size, MADV_HUGEPAGE);
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
  const auto begin = static_cast<std::int64_t>(plan.head.size());
  const std::int64_t part = round_up((plan.bytes - begin) / threads + 1, kDataAlignment);
  parallel_for(threads, threads, [&](std::int64_t i) {
    copy_part(plan.runs, image, begin + i * part, std::min(begin + (i + 1) * part, plan.bytes));
  });
}

}  // namespace trireme
