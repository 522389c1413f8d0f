#include "benchmarks/table_buffers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

constexpr std::int64_t kLeastBytes = 64;
// Of the free memory of a host; the rest is left to its other programs.
constexpr double kMostOfFree = 0.9;

}  // namespace

TableBuffers::TableBuffers(Communicator& control, Options options)
    : control_(control), options_(std::move(options)) {}

std::size_t TableBuffers::add(MemorySource& source) {
  check(bytes_ == 0, "pairs are added before the first row");
  pairs_.emplace_back(options_.device, source);
  return pairs_.size() - 1;
}

// The ranks of a host look at its memory before any of them takes more, so that they see the same.
bool TableBuffers::holds(const std::string& row, std::int64_t bytes) {
  const std::int64_t wanted = std::max(bytes, kLeastBytes);
  if (wanted <= bytes_) {
    return true;
  }
  std::string fault = shortage(wanted);
  bool good = all_ranks(fault);
  if (good) {
    fault = grow(wanted);
    good = all_ranks(fault);
    if (!good) {
      release();
    }
  }
  if (!good && !held_any_) {
    throw ResourceError(fmt::format("{}: the memory is too small: {}", row,
                                    fault.empty() ? "another rank has less than it needs" : fault));
  }
  if (!good) {
    left_out_.push_back(row);
  }
  held_any_ = true;
  return good;
}

bool TableBuffers::all_ranks(const std::string& fault) const {
  return all_reduce_value(control_, std::int64_t{fault.empty() ? 1 : 0}, ReduceOp::min) == 1;
}

// Returns what is missing, or "". A host may promise memory that it does not have, and then end a
// process that uses it; a GPU refuses at once.
std::string TableBuffers::shortage(std::int64_t bytes) const {
  if (options_.device.kind == DeviceKind::cuda) {
    return "";
  }
  const double arrays = 2.0 * static_cast<double>(pairs_.size()) * options_.local_ranks;
  const double more = arrays * static_cast<double>(bytes - bytes_);
  const AvailableMemory free = available_memory();
  if (more <= kMostOfFree * static_cast<double>(free.bytes)) {
    return "";
  }
  return fmt::format("its {:.0f} arrays on this host take {} more, of {} that are free ({})",
                     arrays, format_bytes(static_cast<std::int64_t>(more)),
                     format_bytes(free.bytes), free.source);
}

// Returns why there is no memory, or "". The old arrays go first, so that only the new ones count.
std::string TableBuffers::grow(std::int64_t bytes) {
  release();
  try {
    for (Pair& pair : pairs_) {
      for (Buffer* const buffer : {&pair.first, &pair.second}) {
        *buffer = pair.pool->allocate(bytes);
        if (options_.clear) {
          options_.clear(buffer->view(DType::u8));
        }
      }
    }
  } catch (const ResourceError& error) {
    return error.what();
  }
  bytes_ = bytes;
  return "";
}

// A pool keeps what it once took, so it is replaced by an empty one.
void TableBuffers::release() {
  for (Pair& pair : pairs_) {
    pair.first = Buffer();
    pair.second = Buffer();
    pair.pool = std::make_unique<Pool>(options_.device, pair.pool->source());
  }
  bytes_ = 0;
}

std::string TableBuffers::text() {
  const std::vector<std::string> fresh(left_out_.begin() + static_cast<std::ptrdiff_t>(told_),
                                       left_out_.end());
  told_ = left_out_.size();
  return fresh.empty()
             ? ""
             : fmt::format("# left out, as the memory is too small: {}\n", fmt::join(fresh, ", "));
}

}  // namespace trireme
