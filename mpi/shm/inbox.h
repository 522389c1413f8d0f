// Inbox receives the messages to a rank of a group. It takes letters from the rings as they come,
// and keeps those that no receive has asked for yet, with their data. Messages match receives by
// (sender, tag) in the order of posting. Used by the thread that drives the queue.
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

  // Starts to receive a message of `bytes`, or of up to `room` bytes, and returns the receive's id.
  // `data` must stay valid until finished() has returned true.
  std::int64_t start(void* data, std::int64_t bytes, int from, int tag);
  std::int64_t start_of_any_length(void* data, std::int64_t room, int from, int tag);
  // Throws CommError if the message has another length or its sender withdrew it.
  bool finished(std::int64_t id);
  // Makes all the progress that is possible now. Returns whether there was any.
  bool progress();
  // Ends all receives; none touches its buffer afterwards.
  void give_up() noexcept;

 private:
  enum class State { free, waiting, reading, finished, failed };
  struct Receive {
    State state = State::free;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int from = 0;
    int tag = 0;
    Ticket* ticket = nullptr;  // set while reading
    std::int64_t got = 0;      // bytes
    std::string error;
    bool any_length = false;
  };
  struct Aside {
    int tag;
    std::int64_t bytes;
    std::int64_t ticket;
    std::vector<std::byte> data;  // data of a letter without a ticket
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
  std::vector<std::uint64_t> taken_;  // number of letters taken, by sender
  std::vector<Peer> peers_;
  std::vector<Receive> receives_;  // by id
  std::vector<std::int64_t> free_ids_;
};

}  // namespace trireme
