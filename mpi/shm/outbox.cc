#include "mpi/shm/outbox.h"

#include <algorithm>
#include <new>
#include <thread>

#include "mpi/shm/copy_bytes.h"

namespace trireme {
namespace {

// Messages of up to kEagerMessage bytes are copied, which finishes the send, as long as the unread
// copies stay within kEagerBytes.
constexpr std::int64_t kEagerMessage = 64 << 10;
constexpr std::int64_t kEagerBytes = 4 << 20;
constexpr int kStreams = 4;
constexpr std::int64_t kTicketsAtOnce = 32;
constexpr std::chrono::seconds kWithdrawLimit{1};

}  // namespace

std::int64_t Outbox::start(const void* data, std::int64_t bytes, int to, int tag) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<std::int64_t>(messages_.size()));
    messages_.emplace_back();
  }
  const std::int64_t id = free_ids_.back();
  free_ids_.pop_back();
  message(id) = {State::unwritten, static_cast<const std::byte*>(data), bytes, to, tag, nullptr,
                 nullptr};
  unwritten_[static_cast<std::size_t>(to)].push_back(id);
  (void)write_letters(to);
  return id;
}

bool Outbox::finished(std::int64_t id) {
  Message& asked = message(id);
  if (asked.state == State::unwritten) {
    (void)write_letters(asked.to);
  }
  if (asked.state == State::offered) {
    (void)follow(asked);
  }
  if (asked.state != State::finished) {
    return false;
  }
  asked.state = State::free;
  free_ids_.push_back(id);
  return true;
}

bool Outbox::progress() {
  bool moved = false;
  for (int r = 0; r < group_.size(); ++r) {
    moved = write_letters(r) || moved;
  }
  for (Message& each : messages_) {
    moved = (each.state == State::offered && follow(each)) || moved;
  }
  return moved;
}

bool Outbox::write_letters(int to) {
  auto& ids = unwritten_[static_cast<std::size_t>(to)];
  if (ids.empty()) {
    return false;
  }
  Ring& ring = group_.ring(to, group_.rank());
  std::uint64_t& written = written_[static_cast<std::size_t>(to)];
  const std::uint64_t before = written;
  while (!ids.empty() && written - ring.taken.load() < Ring::kLetters) {
    write(message(ids.front()), ring.letters[written % Ring::kLetters]);
    ids.pop_front();
    ring.written.store(++written);
  }
  if (written != before) {
    group_.wake(to);
  }
  return written != before;
}

void Outbox::write(Message& each, Letter& letter) {
  letter.bytes = each.bytes;
  letter.tag = each.tag;
  letter.ticket = 0;
  if (each.bytes <= Letter::kInlineBytes) {
    copy_bytes(each.data, letter.data.data(), each.bytes);
    each.state = State::finished;
  } else {
    write_ticket(each, letter);
  }
}

void Outbox::write_ticket(Message& each, Letter& letter) {
  const SharedSegment& own = group_.segment(group_.rank());
  Ticket* const ticket = new (take_ticket()) Ticket{};
  letter.ticket = own.offset_of(ticket);
  const bool in_arena = own.contains(each.data, each.bytes);
  (void)free_eager();
  if (!in_arena && each.bytes <= kEagerMessage && eager_bytes_ + each.bytes <= kEagerBytes) {
    auto* const kept = static_cast<std::byte*>(group_.node().arena().take(each.bytes));
    copy_bytes(each.data, kept, each.bytes);
    ticket->source.store(own.offset_of(kept));
    ticket->produced.store(each.bytes);
    eager_.push_back({ticket, kept, each.bytes});
    eager_bytes_ += each.bytes;
    each.state = State::finished;
    return;
  }
  ticket->streamed = !in_arena;
  if (in_arena) {
    ticket->source.store(own.offset_of(each.data));
    ticket->produced.store(each.bytes);
  }
  each.ticket = ticket;
  each.state = State::offered;
}

// Returns whether anything changed.
bool Outbox::follow(Message& each) {
  const std::uint32_t state = each.ticket->state.load();
  if (state == Ticket::mismatched) {
    throw CommError(
        fmt::format("a message of {} bytes met a receive of {}: the ranks run different operations",
                    each.bytes, each.ticket->received_bytes));
  }
  if (state == Ticket::claimed && each.ticket->streamed) {
    return push_stream(each);
  }
  if (state != Ticket::done) {
    return false;
  }
  if (each.stream != nullptr) {
    free_streams_.push_back(each.stream);
  }
  free_tickets_.push_back(each.ticket);
  each.state = State::finished;
  return true;
}

bool Outbox::push_stream(Message& each) {
  if (each.stream == nullptr) {
    each.stream = take_stream();
    if (each.stream == nullptr) {
      return false;
    }
    each.ticket->source.store(group_.segment(group_.rank()).offset_of(each.stream));
  }
  std::int64_t produced = each.ticket->produced.load();
  const std::int64_t before = produced;
  while (produced < each.bytes &&
         produced - each.ticket->consumed.load() <= kStreamBytes - kStreamPieceBytes) {
    const std::int64_t n = std::min(kStreamPieceBytes, each.bytes - produced);
    copy_bytes(each.data + produced, each.stream + produced % kStreamBytes, n);
    produced += n;
    each.ticket->produced.store(produced);
    group_.wake(each.to);
  }
  return produced != before;
}

bool Outbox::free_eager() {
  return std::erase_if(eager_, [this](const Eager& each) {
           if (each.ticket->state.load() != Ticket::done) {
             return false;
           }
           group_.node().arena().give_back(each.copy, each.bytes);
           eager_bytes_ -= each.bytes;
           free_tickets_.push_back(each.ticket);
           return true;
         }) > 0;
}

Ticket* Outbox::take_ticket() {
  if (free_tickets_.empty()) {
    auto* const fresh = static_cast<Ticket*>(
        group_.take(kTicketsAtOnce * static_cast<std::int64_t>(sizeof(Ticket))));
    for (std::int64_t i = 0; i < kTicketsAtOnce; ++i) {
      free_tickets_.push_back(fresh + i);
    }
  }
  Ticket* const ticket = free_tickets_.back();
  free_tickets_.pop_back();
  return ticket;
}

// Returns null if all streams are in use.
std::byte* Outbox::take_stream() {
  if (free_streams_.empty() && streams_ < kStreams) {
    ++streams_;
    return static_cast<std::byte*>(group_.take(kStreamBytes));
  }
  if (free_streams_.empty()) {
    return nullptr;
  }
  std::byte* const stream = free_streams_.back();
  free_streams_.pop_back();
  return stream;
}

// Waits for receivers that are reading in place, but no longer than kWithdrawLimit.
void Outbox::withdraw_all() noexcept {
  const auto limit = std::chrono::steady_clock::now() + kWithdrawLimit;
  for (Message& each : messages_) {
    if (each.state != State::offered) {
      each.state = State::free;
      continue;
    }
    std::uint32_t state = Ticket::offered;
    if (each.ticket->state.compare_exchange_strong(state, Ticket::withdrawn)) {
      continue;
    }
    while (!each.ticket->streamed && each.ticket->state.load() == Ticket::claimed &&
           std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

}  // namespace trireme
