// Inbox: the messages to a rank of a group. Letters are taken from the rings as they come; one that
// nobody has asked for yet is kept aside with what it carries. Matched by (sender, tag) in the
// order of posting. Used by whoever drives the queue.
#pragma once

#include <deque>
#include <list>
#include <vector>

#include "mpi/shm/group.h"

namespace trireme {

class Inbox {
 public:
  explicit Inbox(ShmGroup& group)
      : group_(group), taken_(static_cast<std::size_t>(group.size())), peers_(taken_.size()) {}

  std::int64_t start(void* data, std::int64_t bytes, int from, int tag);
  // Takes a message of up to `room` bytes.
  std::int64_t start_of_any_length(void* data, std::int64_t room, int from, int tag);
  // CommError for a message of another length, or one that was taken back.
  bool finished(std::int64_t id);
  // Moves on what can be; whether anything could.
  bool progress();
  // No receive touches its buffer afterwards.
  void give_up() noexcept;

 private:
  enum class State { free, waiting, reading, finished, failed };
  struct Receive {
    State state = State::free;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int from = 0;
    int tag = 0;
    Ticket* ticket = nullptr;  // while reading
    std::int64_t got = 0;      // bytes
    std::string error;
    bool any_length = false;
  };
  struct Aside {
    int tag;
    std::int64_t bytes;
    std::int64_t ticket;
    std::vector<std::byte> data;  // of a letter without a ticket
  };
  struct Peer {
    std::deque<std::int64_t> waiting;  // ids
    std::deque<Aside> aside;
  };
  std::int64_t start(const Receive& posted);
  Receive& receive(std::int64_t id) { return receives_[static_cast<std::size_t>(id)]; }
  Peer& peer(int r) { return peers_[static_cast<std::size_t>(r)]; }
  bool take_letters(int from);
  void deliver(int from, const Letter& letter);
  void accept(Receive& to, std::int64_t bytes, std::int64_t ticket, const std::byte* data);
  void refuse(Receive& to, std::int64_t bytes, Ticket* ticket);
  bool read(Receive& to);

  ShmGroup& group_;
  std::vector<std::uint64_t> taken_;  // letters of each rank
  std::vector<Peer> peers_;
  std::vector<Receive> receives_;  // by id
  std::vector<std::int64_t> free_ids_;
};

}  // namespace trireme
