// Outbox sends the messages of a rank of a group. A short message travels in the letter itself
// (layout.h). The receiver reads one from the arena in place. Others are copied at once if they are
// not too long and fewer than kEagerBytes are unread; or else they stream through one of a few
// buffers, once the receiver has claimed them. A claimed message always progresses, so that none
// waits for one of another tag. Used by the thread that drives the queue.
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

  // Starts to send a message and returns its id. `data` must stay valid until finished() has
  // returned true.
  std::int64_t start(const void* data, std::int64_t bytes, int to, int tag);
  // Throws CommError if the receiver expected another length.
  bool finished(std::int64_t id);
  // Makes all the progress that is possible now. Returns whether there was any.
  bool progress();
  // Withdraws all messages; no peer reads their buffers afterwards. Waits at most a second for
  // peers that are reading.
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
  struct Eager {  // a copied message, whose send has finished; freed once it was read
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
  std::vector<std::uint64_t> written_;               // number of letters written, by receiver
  std::vector<std::deque<std::int64_t>> unwritten_;  // ids that wait for a free letter, by receiver
  std::vector<Message> messages_;                    // by id
  std::vector<std::int64_t> free_ids_;
  std::vector<Eager> eager_;
  std::int64_t eager_bytes_ = 0;
  std::vector<Ticket*> free_tickets_;
  std::vector<std::byte*> free_streams_;
  int streams_ = 0;
};

}  // namespace trireme
