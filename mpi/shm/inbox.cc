#include "mpi/shm/inbox.h"

#include <algorithm>

#include "mpi/shm/copy_bytes.h"

namespace trireme {
namespace {

// Most bytes to copy before control returns to the caller.
constexpr std::int64_t kPieceBytes = 4 << 20;

}  // namespace

std::int64_t Inbox::start(void* data, std::int64_t bytes, int from, int tag) {
  return start(
      {State::waiting, static_cast<std::byte*>(data), bytes, from, tag, nullptr, 0, {}, false});
}

std::int64_t Inbox::start_of_any_length(void* data, std::int64_t room, int from, int tag) {
  return start(
      {State::waiting, static_cast<std::byte*>(data), room, from, tag, nullptr, 0, {}, true});
}

std::int64_t Inbox::start(const Receive& posted) {
  const int from = posted.from;
  const int tag = posted.tag;
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<std::int64_t>(receives_.size()));
    receives_.emplace_back();
  }
  const std::int64_t id = free_ids_.back();
  free_ids_.pop_back();
  receive(id) = posted;
  auto& aside = peer(from).aside;
  const auto early =
      std::find_if(aside.begin(), aside.end(), [tag](const Aside& a) { return a.tag == tag; });
  if (early == aside.end()) {
    peer(from).waiting.push_back(id);
    (void)take_letters(from);
    return id;
  }
  accept(receive(id), early->bytes, early->ticket, early->data.data());
  aside.erase(early);
  return id;
}

bool Inbox::finished(std::int64_t id) {
  if (receive(id).state == State::waiting) {
    (void)take_letters(receive(id).from);
  }
  Receive& asked = receive(id);
  if (asked.state == State::reading) {
    (void)read(asked);
  }
  if (asked.state == State::failed) {
    throw CommError(asked.error);
  }
  if (asked.state != State::finished) {
    return false;
  }
  asked.state = State::free;
  free_ids_.push_back(id);
  return true;
}

bool Inbox::progress() {
  bool moved = false;
  for (int r = 0; r < group_.size(); ++r) {
    moved = (!peer(r).waiting.empty() && take_letters(r)) || moved;
  }
  for (Receive& each : receives_) {
    moved = (each.state == State::reading && read(each)) || moved;
  }
  return moved;
}

bool Inbox::take_letters(int from) {
  Ring& ring = group_.ring(group_.rank(), from);
  std::uint64_t& taken = taken_[static_cast<std::size_t>(from)];
  const std::uint64_t written = ring.written.load();
  if (taken == written) {
    return false;
  }
  while (taken != written) {
    deliver(from, ring.letters[taken % Ring::kLetters]);
    ring.taken.store(++taken);
  }
  group_.wake(from);
  return true;
}

void Inbox::deliver(int from, const Letter& letter) {
  auto& waiting = peer(from).waiting;
  const auto match = std::find_if(waiting.begin(), waiting.end(),
                                  [&](std::int64_t id) { return receive(id).tag == letter.tag; });
  if (match != waiting.end()) {
    Receive& to = receive(*match);
    waiting.erase(match);
    accept(to, letter.bytes, letter.ticket, letter.data.data());
    return;
  }
  Aside aside{letter.tag, letter.bytes, letter.ticket, {}};
  if (letter.ticket == 0) {
    aside.data.assign(letter.data.begin(), letter.data.begin() + letter.bytes);
  }
  peer(from).aside.push_back(std::move(aside));
}

void Inbox::accept(Receive& to, std::int64_t bytes, std::int64_t ticket_offset,
                   const std::byte* data) {
  Ticket* const ticket = ticket_offset == 0
                             ? nullptr
                             : reinterpret_cast<Ticket*>(group_.segment(to.from).at(ticket_offset));
  if (to.any_length && bytes <= to.bytes) {
    to.bytes = bytes;
  }
  if (bytes != to.bytes) {
    refuse(to, bytes, ticket);
    return;
  }
  if (ticket == nullptr) {
    copy_bytes(data, to.data, bytes);
    to.state = State::finished;
    return;
  }
  std::uint32_t state = Ticket::offered;
  if (!ticket->state.compare_exchange_strong(state, Ticket::claimed)) {
    to.error = group_.describe(to.from) + " withdrew its message after an error";
    to.state = State::failed;
    return;
  }
  to.ticket = ticket;
  to.state = State::reading;
  group_.wake(to.from);
}

void Inbox::refuse(Receive& to, std::int64_t bytes, Ticket* ticket) {
  to.error =
      fmt::format("a message of {} bytes met a receive of {}: the ranks run different operations",
                  bytes, to.bytes);
  to.state = State::failed;
  if (ticket != nullptr) {
    ticket->received_bytes = to.bytes;
    std::uint32_t state = Ticket::offered;
    (void)ticket->state.compare_exchange_strong(state, Ticket::mismatched);
    group_.wake(to.from);
  }
}

// Returns whether there was anything to read.
bool Inbox::read(Receive& to) {
  const std::int64_t there = to.ticket->produced.load();
  if (there == to.got) {
    return false;
  }
  const std::byte* const source = group_.segment(to.from).at(to.ticket->source.load());
  std::int64_t most = kPieceBytes;
  while (to.got < there && most > 0) {
    const std::int64_t at = to.ticket->streamed ? to.got % kStreamBytes : to.got;
    const std::int64_t room =
        to.ticket->streamed ? kStreamPieceBytes - at % kStreamPieceBytes : most;
    const std::int64_t n = std::min({there - to.got, room, most});
    copy_bytes(source + at, to.data + to.got, n);
    to.got += n;
    most -= n;
    to.ticket->consumed.store(to.got);
  }
  if (to.got == to.bytes) {
    to.ticket->state.store(Ticket::done);
    to.state = State::finished;
  }
  group_.wake(to.from);
  return true;
}

// Withdraws the tickets that are being read, so that their senders do not wait for this rank.
void Inbox::give_up() noexcept {
  for (Receive& each : receives_) {
    if (each.state == State::reading) {
      each.ticket->state.store(Ticket::withdrawn);
    }
    each.state = State::free;
  }
}

}  // namespace trireme
