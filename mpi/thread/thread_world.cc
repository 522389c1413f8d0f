#include "mpi/thread/thread_world.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "mpi/collective/queued_communicator.h"

namespace trireme {
namespace {

// Identifies the transfers that match each other: the group, the world ranks of sender and
// receiver, and the tag.
using Channel = std::tuple<int, int, int, int>;

// Wakes one rank of one group from pause(). `rung` stays set from an event until the rank has
// woken, so that an event just before the sleep is not missed.
struct Bell {
  std::condition_variable heard;
  bool rung = false;
  void ring() {
    rung = true;
    heard.notify_one();
  }
};
using BellPtr = std::shared_ptr<Bell>;

struct Transfer {
  void* data;
  std::int64_t bytes;
  bool any_length;  // a receive of any length up to `bytes`
  BellPtr bell;
  std::string error = {};  // written before `finished`, read after it
  std::atomic<bool> finished = false;

  Transfer(void* to, std::int64_t size, bool takes_any_length, BellPtr rings)
      : data(to), bytes(size), any_length(takes_any_length), bell(std::move(rings)) {}
};
using TransferPtr = std::shared_ptr<Transfer>;

struct Posted {
  std::deque<TransferPtr> sends;
  std::deque<TransferPtr> recvs;
};

}  // namespace

struct ThreadWorld::Shared : Inquiry {
  std::mutex mutex;  // guards everything below except the hosts, and every bell
  std::vector<std::weak_ptr<Bell>> bells;
  std::map<Channel, Posted> posted;
  std::map<std::tuple<int, int, int>, int> groups;  // by parent, number of its split, first member
  std::string death;                                // why the first rank ended early
  std::atomic<bool> mourning = false;               // whether `death` is set
  std::exception_ptr first_error;
  std::vector<std::string> hosts;
  std::vector<std::unique_ptr<FlightRecorder>> recorders;  // by rank; outlive all communicators

  // Completes the transfers of a channel that match. The caller holds the lock.
  void match(Posted& both);
  int group_of_split(int parent, int split, int first_member);
  void report(int rank, std::exception_ptr error, const std::string& what);
  std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                               std::chrono::milliseconds patience) override;
};

void ThreadWorld::Shared::match(Posted& both) {
  while (!both.sends.empty() && !both.recvs.empty()) {
    Transfer& from = *both.sends.front();
    Transfer& to = *both.recvs.front();
    const std::int64_t bytes = std::min(from.bytes, to.bytes);
    if (from.bytes != to.bytes && !to.any_length) {
      from.error = to.error = fmt::format(
          "a message of {} bytes met a receive of {}: the ranks run different operations",
          from.bytes, to.bytes);
    } else if (bytes > 0) {
      std::memcpy(to.data, from.data, static_cast<std::size_t>(bytes));
    }
    for (Transfer* const done : {&from, &to}) {
      done->finished.store(true);
      done->bell->ring();
    }
    both.sends.pop_front();
    both.recvs.pop_front();
  }
}

int ThreadWorld::Shared::group_of_split(int parent, int split, int first_member) {
  const std::lock_guard lock(mutex);
  const int next = static_cast<int>(groups.size()) + 1;
  return groups.try_emplace({parent, split, first_member}, next).first->second;
}

void ThreadWorld::Shared::report(int rank, std::exception_ptr error, const std::string& what) {
  const std::lock_guard lock(mutex);
  if (first_error == nullptr) {
    first_error = std::move(error);
    death = fmt::format("rank {} (host {}) ended early: {}", rank,
                        hosts[static_cast<std::size_t>(rank)], what);
    mourning.store(true);
  }
  for (const auto& weak : bells) {
    if (const BellPtr bell = weak.lock(); bell != nullptr) {
      bell->ring();
    }
  }
}

std::vector<std::optional<FlightReport>> ThreadWorld::Shared::ask(const FlightQuestion& question,
                                                                  std::chrono::milliseconds) {
  std::vector<std::optional<FlightReport>> answers;
  for (const auto& recorder : recorders) {
    recorder->dump_in_background(question.why);
    answers.emplace_back(recorder->answer(question));
  }
  return answers;
}

class ThreadWorld::Link : public Transport {
 public:
  Link(std::shared_ptr<Shared> shared, int group, GroupMembers members)
      : Transport(std::move(members)), shared_(std::move(shared)), group_(group) {
    const std::lock_guard lock(shared_->mutex);
    std::erase_if(shared_->bells, [](const auto& bell) { return bell.expired(); });
    shared_->bells.push_back(bell_);
  }

  TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) override {
    // Data is only read through this pointer, since it is the sending side of the match.
    return post({group_, rank(), to, tag}, const_cast<void*>(data), bytes, false, &Posted::sends);
  }
  TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) override {
    return post({group_, from, rank(), tag}, data, bytes, false, &Posted::recvs);
  }
  TransferId start_recv_of_any_length(void* data, std::int64_t, std::int64_t room, int from,
                                      int tag) override {
    return post({group_, from, rank(), tag}, data, room, true, &Posted::recvs);
  }
  bool finished(TransferId id) override;
  void cancel_all() noexcept override;
  void pause(std::chrono::microseconds limit) override {
    std::unique_lock lock(shared_->mutex);
    bell_->heard.wait_for(lock, limit, [this] { return bell_->rung; });
    bell_->rung = false;
  }
  // The bell wakes pause(). Long sleeps leave the cores to other ranks, which may be many more than
  // there are cores.
  bool wakes() const override { return true; }
  std::unique_ptr<Transport> split_off(const std::vector<int>& members) override;

 private:
  TransferId post(const Channel& channel, void* data, std::int64_t bytes, bool any_length,
                  std::deque<TransferPtr> Posted::*side);

  std::shared_ptr<Shared> shared_;
  int group_;
  BellPtr bell_ = std::make_shared<Bell>();
  int splits_ = 0;
  TransferId next_id_ = 0;
  std::map<TransferId, TransferPtr> transfers_;
};

TransferId ThreadWorld::Link::post(const Channel& channel, void* data, std::int64_t bytes,
                                   bool any_length, std::deque<TransferPtr> Posted::*side) {
  auto transfer = std::make_shared<Transfer>(data, bytes, any_length, bell_);
  transfers_.emplace(next_id_, transfer);
  const std::lock_guard lock(shared_->mutex);
  Posted& both = shared_->posted[channel];
  (both.*side).push_back(std::move(transfer));
  shared_->match(both);
  return next_id_++;
}

bool ThreadWorld::Link::finished(TransferId id) {
  const auto at = transfers_.find(id);
  check(at != transfers_.end(), "a transfer is not queried again after it has finished");
  if (at->second->finished.load()) {
    if (!at->second->error.empty()) {
      throw CommError(at->second->error);
    }
    transfers_.erase(at);
    return true;
  }
  if (shared_->mourning.load()) {
    const std::lock_guard lock(shared_->mutex);
    throw CommError(shared_->death);
  }
  return false;
}

void ThreadWorld::Link::cancel_all() noexcept {
  const std::lock_guard lock(shared_->mutex);
  const auto mine = [this](const TransferPtr& posted) {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [&](const auto& entry) { return entry.second == posted; });
  };
  for (auto& [channel, both] : shared_->posted) {
    std::erase_if(both.sends, mine);
    std::erase_if(both.recvs, mine);
  }
  transfers_.clear();
}

std::unique_ptr<Transport> ThreadWorld::Link::split_off(const std::vector<int>& members) {
  GroupMembers chosen = this->members().subset(members);
  const int group = shared_->group_of_split(group_, splits_++, chosen.world_rank(0));
  return std::make_unique<Link>(shared_, group, std::move(chosen));
}

ThreadWorld::ThreadWorld(int size, std::vector<std::string> hosts)
    : shared_(std::make_shared<Shared>()) {
  check(size > 0, "a world has ranks");
  for (int rank = static_cast<int>(hosts.size()); rank < size; ++rank) {
    hosts.push_back(fmt::format("thread{}", rank));
  }
  hosts.resize(static_cast<std::size_t>(size));
  shared_->hosts = std::move(hosts);
  for (int rank = 0; rank < size; ++rank) {
    shared_->recorders.push_back(
        std::make_unique<FlightRecorder>(rank, shared_->hosts[static_cast<std::size_t>(rank)]));
  }
}

ThreadWorld::~ThreadWorld() = default;

FlightRecorder& ThreadWorld::recorder(int rank) {
  return *shared_->recorders.at(static_cast<std::size_t>(rank));
}

void ThreadWorld::run(const std::function<void(Communicator&)>& rank_function) {
  run_over([](std::unique_ptr<Transport> link) { return link; }, rank_function);
}

void ThreadWorld::run_over(const Wrap& wrap,
                           const std::function<void(Communicator&)>& rank_function) {
  const int size = static_cast<int>(shared_->hosts.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([this, &wrap, &rank_function, rank] {
      try {
        const Watch watch{&recorder(rank), shared_.get(), 0};
        auto link =
            std::make_unique<Link>(shared_, 0, GroupMembers::of_world(rank, shared_->hosts));
        QueuedCommunicator comm(wrap(std::move(link)), "world", kDefaultDeadline, watch);
        rank_function(comm);
      } catch (const std::exception& error) {
        shared_->report(rank, std::current_exception(), error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (shared_->first_error != nullptr) {
    std::rethrow_exception(shared_->first_error);
  }
}

}  // namespace trireme
