// A communicator of the NCCL stand-in: ranks of one host, in processes or threads, that share a
// file in /dev/shm. The file is unlinked once all ranks have mapped it.
//
//   | Meeting | a Box for each rank | a Pipe for each pair, by sender, then receiver |
//
// Zero bytes are the initial state of all three.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <nccl.h>

namespace sim {

inline constexpr int kMaxRanks = 64;
inline constexpr std::size_t kBoxBytes = 256 << 10;
inline constexpr std::size_t kPipeBytes = 64 << 10;

struct Meeting {
  std::atomic<int> arrived;
  std::atomic<int> error;   // an ncclResult_t that every rank sees
  std::atomic<int> splits;  // two arrivals of each rank per split
};

// The ranks of a collective operation must agree on its CollectiveShape.
struct CollectiveShape {
  int kind = 0;
  int type = 0;
  int reduction = 0;
  int root = 0;
  std::uint64_t bytes = 0;
  bool operator==(const CollectiveShape&) const = default;
};

// A rank offers data to the others in its Box. Turns use the two halves alternately.
struct Box {
  std::atomic<std::uint64_t> posted;  // turns
  CollectiveShape shapes[2];
  int device;
  int color;  // of a split
  int key;
  alignas(64) std::byte data[2][kBoxBytes];
};

// Bytes from one rank to another.
struct Pipe {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  alignas(64) std::byte data[kPipeBytes];
};

class Communicator {
 public:
  // Returns nullptr if the file cannot be made.
  static std::shared_ptr<Communicator> open(const std::string& name, int ranks, int rank,
                                            bool is_blocking);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int device() const { return device_; }
  bool is_blocking() const { return is_blocking_; }
  bool is_complete() const { return meeting_->arrived.load() >= ranks_; }
  void wait_until_complete() const;

  // Collective over the communicator. Returns nullptr for a negative color.
  std::shared_ptr<Communicator> split(int color, int key, bool is_blocking);

  Meeting& meeting() const { return *meeting_; }
  Box& box(int rank) const { return boxes_[rank]; }
  Pipe& pipe(int from, int to) const { return pipes_[from * ranks_ + to]; }

  std::atomic<bool> aborted = false;
  // Groups of operations run in the order in which they were numbered.
  std::atomic<std::uint64_t> numbered = 0;
  std::atomic<std::uint64_t> finished = 0;
  std::uint64_t turns = 0;  // of the boxes; used by the machine's worker

  // Log the links over which operations of these kinds go, each once.
  void log_ring();
  void log_peer(int peer, bool is_sender);

 private:
  Communicator() = default;
  void wait_for_splits(int arrivals) const;

  std::string name_;
  int ranks_ = 0;
  int rank_ = 0;
  int device_ = 0;
  bool is_blocking_ = true;
  int splits_ = 0;
  bool has_logged_ring_ = false;
  std::set<std::pair<int, bool>> logged_peers_;
  std::size_t bytes_ = 0;
  Meeting* meeting_ = nullptr;
  Box* boxes_ = nullptr;
  Pipe* pipes_ = nullptr;
};

}  // namespace sim
