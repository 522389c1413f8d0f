#include "src/device/sim/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/device/sim/links.h"
#include "src/device/sim/machine.h"

namespace sim {
namespace {

constexpr std::chrono::microseconds kPause{100};
constexpr std::size_t kCacheLine = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

std::shared_ptr<Communicator> Communicator::open(const std::string& name, int ranks, int rank,
                                                 bool is_blocking) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t boxes_at = aligned(sizeof(Meeting));
  const std::size_t pipes_at = boxes_at + count * sizeof(Box);
  const std::size_t bytes = pipes_at + count * count * sizeof(Pipe);
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0) {
    return nullptr;
  }
  void* memory = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  std::shared_ptr<Communicator> made(new Communicator);
  made->name_ = name;
  made->ranks_ = ranks;
  made->rank_ = rank;
  made->device_ = current_device();
  made->is_blocking_ = is_blocking;
  made->bytes_ = bytes;
  auto* start = static_cast<std::byte*>(memory);
  made->meeting_ = reinterpret_cast<Meeting*>(start);
  made->boxes_ = reinterpret_cast<Box*>(start + boxes_at);
  made->pipes_ = reinterpret_cast<Pipe*>(start + pipes_at);
  made->box(rank).device = made->device_;
  if (made->meeting_->arrived.fetch_add(1) + 1 == ranks) {
    ::shm_unlink(name.c_str());
  }
  return made;
}

Communicator::~Communicator() {
  if (!is_complete()) {
    ::shm_unlink(name_.c_str());
  }
  ::munmap(meeting_, bytes_);
}

void Communicator::wait_until_complete() const {
  while (!is_complete() && !aborted) {
    std::this_thread::sleep_for(kPause);
  }
}

void Communicator::log_ring() {
  if (ranks_ < 2 || std::exchange(has_logged_ring_, true)) {
    return;
  }
  const auto other = [&](int distance) {
    const int rank = (rank_ + ranks_ + distance) % ranks_;
    return LinkedRank{rank, box(rank).device};
  };
  log_channel(other(0), other(1), false, 0);
  log_channel(other(-1), other(0), true, 0);
}

void Communicator::log_peer(int peer, bool is_sender) {
  if (peer == rank_ || !logged_peers_.emplace(peer, is_sender).second) {
    return;
  }
  const LinkedRank own{rank_, device_};
  const LinkedRank other{peer, box(peer).device};
  log_channel(is_sender ? own : other, is_sender ? other : own, !is_sender, 1);
}

void Communicator::wait_for_splits(int arrivals) const {
  meeting_->splits.fetch_add(1);
  while (meeting_->splits.load() < arrivals && !aborted) {
    std::this_thread::sleep_for(kPause);
  }
}

std::shared_ptr<Communicator> Communicator::split(int color, int key, bool is_blocking) {
  box(rank_).color = color;
  box(rank_).key = key;
  const int turn = splits_++;
  wait_for_splits(ranks_ * (2 * turn + 1));
  std::vector<std::pair<int, int>> members;  // key and rank
  for (int rank = 0; rank < ranks_; ++rank) {
    if (box(rank).color == color) {
      members.emplace_back(box(rank).key, rank);
    }
  }
  std::sort(members.begin(), members.end());
  const auto own = std::find(members.begin(), members.end(), std::pair(key, rank_));
  wait_for_splits(ranks_ * (2 * turn + 2));  // all have read the boxes
  if (color < 0) {
    return nullptr;
  }
  const std::string name = name_ + "-" + std::to_string(turn) + "-" + std::to_string(color);
  return open(name, static_cast<int>(members.size()), static_cast<int>(own - members.begin()),
              is_blocking);
}

}  // namespace sim
