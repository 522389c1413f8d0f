// Outbox: the messages that a rank of a group sends. A short one travels in the letter itself
// (layout.h); one from the arena is read in place by the receiver; others are copied at once while
// kEagerBytes last, or else, when the receiver has claimed them, stream through one of a few
// buffers. A claimed message always gets on, so that no message waits for one of another tag. Used
// by whoever drives the queue.
#pragma once

#include <deque>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/shm/group.h"

namespace trireme {

class Outbox {
 public:
  explicit Outbox(ShmGroup& group)
      : group_(group),
        written_(static_cast<std::size_t>(group.size())),
        unwritten_(written_.size()) {}

  std::int64_t start(const void* data, std::int64_t bytes, int to, int tag);
  // CommError if the receiver expected another length.
  bool finished(std::int64_t id);
  // Moves on what can be; whether anything could.
  bool progress();
  // No peer reads the senders' buffers afterwards.
  void withdraw_all() noexcept;

 private:
  enum class State { free, unwritten, offered, finished };
  struct Message {
    State state = State::free;
    const std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int to = 0;
    int tag = 0;
    Ticket* ticket = nullptr;
    std::byte* stream = nullptr;
  };
  struct Eager {  // copied, the send has finished; freed when it has been read
    Ticket* ticket;
    std::byte* copy;
    std::int64_t bytes;
  };
  Message& message(std::int64_t id) { return messages_[static_cast<std::size_t>(id)]; }
  bool write_letters(int to);
  void write(Message& message, Letter& letter);
  void write_ticket(Message& message, Letter& letter);
  bool push_stream(Message& message);
  bool follow(Message& message);
  bool free_eager();
  Ticket* take_ticket();
  std::byte* take_stream();

  ShmGroup& group_;
  std::vector<std::uint64_t> written_;               // letters to each rank
  std::vector<std::deque<std::int64_t>> unwritten_;  // ids, by rank: the ring was full
  std::vector<Message> messages_;                    // by id
  std::vector<std::int64_t> free_ids_;
  std::vector<Eager> eager_;
  std::int64_t eager_bytes_ = 0;
  std::vector<Ticket*> free_tickets_;
  std::vector<std::byte*> free_streams_;
  int streams_ = 0;
};

}  // namespace trireme
