#include "src/device/pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "src/base/error.h"

namespace trireme {
namespace {

// Sizes are rounded up to an eighth of their power of two, so that near sizes share a block and at
// most 12.5 % is lost.
std::int64_t rounded(std::int64_t bytes) {
  const std::int64_t least = std::max<std::int64_t>(bytes, kSmallAlignment);
  const auto power = std::bit_floor(static_cast<std::uint64_t>(least));
  const std::int64_t step = std::max(static_cast<std::int64_t>(power / 8), kSmallAlignment);
  return (least + step - 1) / step * step;
}

}  // namespace

struct Pool::State {
  mutable std::mutex mutex;
  std::map<std::int64_t, std::vector<void*>> free;  // by capacity
  int lendings = 0;
  std::int64_t reserved = 0;
  std::int64_t used = 0;
  std::int64_t peak = 0;
};

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
  }
  return *this;
}

Buffer::~Buffer() { give_back(); }

Device Buffer::device() const { return pool_ == nullptr ? Device::cpu() : pool_->device(); }

void Buffer::give_back() {
  if (pool_ != nullptr) {
    pool_->give_back(data_, capacity_);
    pool_ = nullptr;
  }
}

Pool::Pool(Device device, MemorySource& source)
    : device_(device), source_(source), state_(std::make_unique<State>()) {}

Pool::~Pool() {
  for (auto& [capacity, blocks] : state_->free) {
    for (void* block : blocks) {
      source_.give_back(block, capacity);
    }
  }
}

Pool::Lending::Lending(Pool& pool, bool is_on) : pool_(pool), is_on_(is_on) {
  const std::lock_guard lock(pool_.state_->mutex);
  pool_.state_->lendings += is_on_ ? 1 : 0;
}

Pool::Lending::~Lending() {
  const std::lock_guard lock(pool_.state_->mutex);
  pool_.state_->lendings -= is_on_ ? 1 : 0;
}

Buffer Pool::allocate(std::int64_t bytes) {
  std::int64_t capacity = rounded(bytes);
  void* data = nullptr;
  const std::lock_guard lock(state_->mutex);
  auto blocks = state_->free.try_emplace(capacity).first;
  if (state_->lendings > 0) {
    const auto larger = std::find_if(blocks, state_->free.end(),
                                     [](const auto& each) { return !each.second.empty(); });
    blocks = larger == state_->free.end() ? blocks : larger;
  }
  if (!blocks->second.empty()) {
    capacity = blocks->first;
    data = blocks->second.back();
    blocks->second.pop_back();
  } else {
    data = source_.take(capacity);
    state_->reserved += capacity;
  }
  state_->used += capacity;
  state_->peak = std::max(state_->peak, state_->used);
  return {this, data, bytes, capacity};
}

void Pool::give_back(void* data, std::int64_t capacity) {
  const std::lock_guard lock(state_->mutex);
  state_->free[capacity].push_back(data);
  state_->used -= capacity;
}

std::int64_t Pool::reserved_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}

std::int64_t Pool::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}

}  // namespace trireme
