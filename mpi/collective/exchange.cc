#include "mpi/collective/exchange.h"

#include <algorithm>

#include <sched.h>

#include "src/base/check.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::chrono::milliseconds kPeerCheckInterval{10};

}  // namespace

Backoff::Backoff(const Transport& transport) : longest_(transport.wakes() ? 5000 : 200) {}

std::chrono::microseconds Backoff::next() {
  const auto now = Clock::now();
  if (spin_until_ == Clock::time_point{}) {
    spin_until_ = now + std::chrono::microseconds(30);
  }
  if (now < spin_until_) {
    ::sched_yield();
    return std::chrono::microseconds(0);
  }
  const auto sleep = sleep_;
  sleep_ = std::min(sleep_ * 3 / 2, longest_);
  return sleep;
}

Exchange Exchange::over(Transport& part) const {
  Exchange exchange(part, label_, limit_, meanwhile_, watch_);
  exchange.group_size_ = group_size_;
  exchange.deadline_ = deadline_;
  return exchange;
}

TransferId Exchange::send(const void* data, std::int64_t bytes, int to, int tag) {
  const TransferId id = transport_.start_send(data, bytes, to, tag);
  transfers_.push_back({id, bytes, to, true});
  return id;
}

TransferId Exchange::recv(void* data, std::int64_t bytes, int from, int tag) {
  const TransferId id = transport_.start_recv(data, bytes, from, tag);
  transfers_.push_back({id, bytes, from, false});
  return id;
}

TransferId Exchange::recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room,
                                        int from) {
  const TransferId id =
      transport_.start_recv_of_any_length(data, bytes, room, from, kCollectiveTag);
  transfers_.push_back({id, bytes, from, false});
  return id;
}

void Exchange::wait(TransferId id) {
  const auto transfer = std::find_if(transfers_.begin(), transfers_.end(),
                                     [id](const Transfer& t) { return t.id == id; });
  check(transfer != transfers_.end(),
        "a transfer is waited for once, by the exchange that started it");
  fault("comm.wait");
  Backoff backoff(transport_);
  while (!finished(id)) {
    check_deadline([this] { return describe_transfers(); });
    rest(backoff);
  }
  transfers_.erase(transfer);
}

void Exchange::rest(Backoff& backoff) {
  meanwhile_();
  if (const auto sleep = backoff.next(); sleep.count() > 0) {
    transport_.pause(sleep);
  }
}

void Exchange::wait_all() {
  while (!transfers_.empty()) {
    wait(transfers_.front().id);
  }
}

bool Exchange::settled() {
  std::erase_if(transfers_, [this](const Transfer& t) { return finished(t.id); });
  if (!transfers_.empty()) {
    check_deadline([this] { return describe_transfers(); });
  }
  return transfers_.empty();
}

bool Exchange::finished(TransferId id) {
  try {
    return transport_.finished(id);
  } catch (const CommError& error) {
    rethrow_with_label(error);
  }
}

void Exchange::rethrow_with_label(const CommError& error) const {
  throw CommError(fmt::format("{}: {}: {}", describe(rank()), label_.text(), error.what()));
}

void Exchange::check_deadline(const std::function<std::string()>& still_waiting) {
  const auto now = Clock::now();
  if (now >= next_check_) {
    next_check_ = now + kPeerCheckInterval;
    check_peers();
  }
  const bool here = now >= deadline_;
  if (here || (watch_ != nullptr && watch_->is_overdue_elsewhere(label_))) {
    throw Hang(describe_hang(here, still_waiting()));
  }
}

// Asks the other ranks, which takes seconds.
std::string Exchange::describe_hang(bool here, const std::string& still_waiting) const {
  const std::string limit = format_seconds(std::chrono::duration<double>(limit_).count());
  const std::string late =
      here ? fmt::format("did not finish within {}", limit)
           : fmt::format("has passed its deadline on rank {}", watch_->alarmed_by());
  const std::string culprits = watch_ == nullptr ? "" : watch_->find_culprits(label_);
  return fmt::format(
      "{}: {} in a group of {} ranks {}: {}{}still waiting {}. Look at what those ranks did last "
      "(<run>/logs) and whether their hosts are alive; if such a wait is normal here, raise "
      "comm.deadline",
      describe(rank()), label_.text(), group_size_, late, culprits, culprits.empty() ? "" : "; ",
      still_waiting);
}

void Exchange::check_peers() const {
  try {
    transport_.check_peers();
  } catch (const CommError& error) {
    rethrow_with_label(error);
  }
}

std::string Exchange::describe_awaited(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) {
    text += fmt::format("{}{}", text.empty() ? "for " : ", ", describe(rank));
  }
  return text;
}

// Returns one phrase per peer and direction, in the order of the transfers.
std::string Exchange::describe_transfers() const {
  std::string text;
  std::vector<std::pair<int, bool>> seen;
  for (const Transfer& transfer : transfers_) {
    const std::pair<int, bool> key{transfer.peer, transfer.sends};
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      continue;
    }
    seen.push_back(key);
    std::int64_t bytes = 0;
    for (const Transfer& other : transfers_) {
      bytes += other.peer == key.first && other.sends == key.second ? other.bytes : 0;
    }
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : ", ",
                        transfer.sends ? "to send" : "to receive", format_bytes(bytes),
                        transfer.sends ? "to" : "from", describe(transfer.peer));
  }
  return text;
}

}  // namespace trireme
