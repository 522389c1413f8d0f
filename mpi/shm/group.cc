#include "mpi/shm/group.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include <sched.h>

namespace trireme {
namespace {

// How long revoke() and split() wait for a peer that is alive but does not respond.
constexpr std::chrono::seconds kTouchLimit{1};
constexpr std::chrono::minutes kSplitLimit{10};
// Number of polls before a rank of a crowded host yields.
constexpr int kCrowdedPolls = 20;

using Clock = std::chrono::steady_clock;

}  // namespace

ShmGroup::ShmGroup(std::shared_ptr<ShmNode> node, std::vector<int> members, int rank)
    : node_(std::move(node)),
      members_(std::move(members)),
      rank_(rank),
      layout_(static_cast<int>(members_.size())),
      blocks_(members_.size()) {
  node_->reclaim();
  auto* const own = static_cast<std::byte*>(take(layout_.bytes));
  blocks_[static_cast<std::size_t>(rank_)] = own;
  new (own) GroupHeader{};
  for (int r = 0; r < size(); ++r) {
    new (&offer(rank_, r)) Offer{};
    new (&ring(rank_, r)) Ring{};
  }
}

std::unique_ptr<ShmGroup> ShmGroup::of_node(std::shared_ptr<ShmNode> node,
                                            Communicator& host_group) {
  std::vector<int> members;
  for (int m = 0; m < node->members().size(); ++m) {
    members.push_back(m);
  }
  const int own = node->members().rank();
  std::unique_ptr<ShmGroup> group(new ShmGroup(std::move(node), std::move(members), own));
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(group->size()));
  offsets[static_cast<std::size_t>(own)] = group->own_offset();
  host_group.all_gather({offsets.data(), group->size(), DType::i64}).wait();
  group->find_blocks(offsets);
  return group;
}

std::unique_ptr<ShmGroup> ShmGroup::split(const std::vector<int>& ranks) {
  std::vector<int> members;
  for (const int r : ranks) {
    members.push_back(member(r));
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  std::unique_ptr<ShmGroup> group(new ShmGroup(node_, std::move(members), static_cast<int>(own)));
  const std::uint64_t number = ++splits_;
  for (const int r : ranks) {
    Offer& mine = offer(rank_, r);
    if (r != rank_) {
      wait_for_peer([&] { return mine.taken.load() == mine.number.load(); });
      mine.offset.store(group->own_offset());
      mine.number.store(number);
      wake(r);
    }
  }
  std::vector<std::int64_t> offsets;
  for (const int r : ranks) {
    offsets.push_back(r == rank_ ? group->own_offset() : accept_offer(r, number));
  }
  group->find_blocks(offsets);
  return group;
}

std::int64_t ShmGroup::accept_offer(int from, std::uint64_t number) {
  Offer& theirs = offer(from, rank_);
  wait_for_peer([&] { return theirs.number.load() == number; });
  const std::int64_t offset = theirs.offset.load();
  theirs.taken.store(number);
  wake(from);
  return offset;
}

// Waits on the caller's thread, while another thread may drive the queue.
void ShmGroup::wait_for_peer(const std::function<bool()>& ready) {
  const auto limit = Clock::now() + kSplitLimit;
  while (!ready()) {
    node_->sleep(std::chrono::milliseconds(1), ready);
    for (int r = 0; r < size(); ++r) {
      if (node_->is_dead(member(r)) && !ready()) {
        throw CommError(
            fmt::format("{}: cannot split the group: {} is dead", describe(rank_), describe(r)));
      }
    }
    if (Clock::now() > limit) {
      throw Hang(
          fmt::format("{}: cannot split the group: not all of its ranks arrived within 10 minutes",
                      describe(rank_)));
    }
  }
}

void ShmGroup::find_blocks(const std::vector<std::int64_t>& offsets) {
  for (int r = 0; r < size(); ++r) {
    blocks_[static_cast<std::size_t>(r)] = segment(r).at(offsets[static_cast<std::size_t>(r)]);
  }
}

ShmGroup::~ShmGroup() {
  node_->retire(std::move(pieces_), &header(rank_).left, size());
  for (int r = 0; r < size(); ++r) {
    if (block(r) != nullptr) {
      header(r).left.fetch_add(1);
    }
  }
}

void* ShmGroup::take(std::int64_t bytes) {
  void* const data = node_->arena().take(bytes);
  const std::lock_guard lock(mutex_);
  pieces_.push_back({data, bytes});
  return data;
}

Offer& ShmGroup::offer(int owner, int reader) const {
  return reinterpret_cast<Offer*>(block(owner) + layout_.offers)[reader];
}

std::int64_t* ShmGroup::counts(int r, std::uint64_t turn) const {
  return reinterpret_cast<std::int64_t*>(block(r) + layout_.counts) +
         static_cast<std::int64_t>(turn % 2) * size();
}

Ring& ShmGroup::ring(int owner, int sender) const {
  return reinterpret_cast<Ring*>(block(owner) + layout_.rings)[sender];
}

std::byte* ShmGroup::slot(int r, std::uint64_t turn) const {
  return block(r) + layout_.slots + static_cast<std::int64_t>(turn % 2) * kSlotBytes;
}

std::byte* ShmGroup::inlet(int r, std::uint64_t turn) const {
  return block(r) + layout_.inlets + static_cast<std::int64_t>(turn % 2) * kChunkBytes;
}

std::byte* ShmGroup::outlet(int r, std::uint64_t turn) const {
  return block(r) + layout_.outlets + static_cast<std::int64_t>(turn % 2) * (kChunkBytes / 2);
}

void ShmGroup::wake_all() const {
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) {
      wake(r);
    }
  }
}

// The store to `number` may become visible after wake_all() has looked for sleepers. A peer that
// goes to sleep in between is not woken, and wakes at its limit.
void ShmGroup::post(Exchange& exchange) {
  next_notice_.label = exchange.label();
  Post& own = header(rank_).posts[++operations_ % 2];
  std::memcpy(&own.notice, &next_notice_, sizeof(Notice));
  own.number.store(operations_, std::memory_order_release);
  wake_all();
  wait(exchange, Waiting::posts);
  for (int r = 0; r < size(); ++r) {
    if (r != rank_ && !agree(posted(r).label, next_notice_.label)) {
      throw CommError(fmt::format("{} is in {}, but {} is in {}: the ranks are out of step",
                                  describe(rank_), next_notice_.label.full_text(), describe(r),
                                  posted(r).label.full_text()));
    }
  }
}

void ShmGroup::meet(Exchange& exchange) {
  header(rank_).step.store(++steps_, std::memory_order_release);
  wake_all();
  wait(exchange, Waiting::steps);
}

void ShmGroup::wait(Exchange& exchange, Waiting what) {
  waiting_ = what;
  first_missing_ = 0;
  int polls = 0;
  const auto ready = [&] {
    if (arrived()) {
      return true;
    }
    if (node_->crowded() && ++polls > kCrowdedPolls) {
      (void)::sched_yield();
    }
    return false;
  };
  exchange.wait_until(ready, [this] {
    std::vector<int> missing;
    for (int r = 0; r < size(); ++r) {
      if (!has(r)) {
        missing.push_back(r);
      }
    }
    return missing;
  });
  waiting_ = Waiting::nothing;
}

// A peer is at most one operation ahead, because it waits for this rank's next post.
bool ShmGroup::has(int r) const {
  return waiting_ == Waiting::posts
             ? header(r).posts[operations_ % 2].number.load(std::memory_order_acquire) >=
                   operations_
             : header(r).step.load(std::memory_order_acquire) >= steps_;
}

bool ShmGroup::arrived() const {
  while (first_missing_ < size() && has(first_missing_)) {
    ++first_missing_;
  }
  return first_missing_ == size();
}

ShmGroup::Touch::Touch(ShmGroup& group) : group_(group) {
  group_.header(group_.rank_).touching.store(1);
  for (int r = 0; r < group_.size(); ++r) {
    if (group_.header(r).revoked.load() != 0) {
      group_.header(group_.rank_).touching.store(0);
      throw CommError(fmt::format("{} stopped communicating after an error", group_.describe(r)));
    }
  }
}

ShmGroup::Touch::~Touch() { group_.header(group_.rank_).touching.store(0); }

void ShmGroup::revoke() noexcept {
  header(rank_).revoked.store(1);
  const auto limit = Clock::now() + kTouchLimit;
  for (int r = 0; r < size(); ++r) {
    while (r != rank_ && header(r).touching.load() != 0 && !node_->is_dead(member(r)) &&
           Clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

void ShmGroup::check_peers() {
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || !node_->is_dead(member(r))) {
      continue;
    }
    if (std::find(seen_dead_.begin(), seen_dead_.end(), r) != seen_dead_.end()) {
      throw CommError(describe(r) + " is dead: look at what it printed last, then relaunch");
    }
    seen_dead_.push_back(r);
  }
}

}  // namespace trireme
