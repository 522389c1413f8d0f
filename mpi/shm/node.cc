#include "mpi/shm/node.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <exception>

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi/agreement.h"
#include "mpi/shm/layout.h"

namespace trireme {
namespace {

// Reserves twice each rank's share of the host's memory, because ranks may need unequal amounts,
// and at least 64 GiB or all of the host's memory.
std::int64_t default_reserve(int ranks) {
  const std::int64_t memory = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return std::max(memory * 2 / ranks, std::min(memory, std::int64_t{64} << 30));
}

// Returns 32 MiB if the system does not report a size.
std::int64_t cache_of_host() {
  const std::int64_t bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : std::int64_t{32} << 20;
}

std::uint32_t* word_of(std::atomic<std::uint32_t>& atomic) {
  static_assert(sizeof(atomic) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&atomic);
}

std::string agreed_fault(Communicator& group, const std::function<void()>& work) {
  std::string fault;
  try {
    work();
  } catch (const ConfigError& error) {
    fault = error.what();
  } catch (const DeviceError& error) {
    fault = error.what();
  }
  return gather_faults(group, fault);
}

}  // namespace

ShmNode::ShmNode(Communicator& host_group, const ShmOptions& options)
    : members_(host_group.members()),
      uncaught_at_start_(std::uncaught_exceptions()),
      crowded_(host_group.size() > ::sysconf(_SC_NPROCESSORS_ONLN)),
      cache_bytes_(cache_of_host()),
      peers_(static_cast<std::size_t>(host_group.size())) {
  std::shared_ptr<SharedSegment>& own = peers_[static_cast<std::size_t>(members_.rank())].segment;
  std::string fault = agreed_fault(host_group, [&] {
    own = SharedSegment::make(options.reserve_bytes > 0 ? options.reserve_bytes
                                                        : default_reserve(host_group.size()));
  });
  if (!fault.empty()) {
    throw ConfigError(fault);
  }
  if (options.table != nullptr) {
    options.table->add(own);
  }
  const auto addresses = all_gather_text(host_group, own->address().text());
  fault = agreed_fault(host_group, [&] { find_peers(addresses, options.table); });
  if (!fault.empty()) {
    throw ConfigError(fault);
  }
  arena_ = std::make_unique<Arena>(own);
  fault = agreed_fault(host_group, [&] { make_room(); });
  if (!fault.empty()) {
    throw ConfigError(fault);
  }
}

// Checks that there is memory for the first group, because without it another transport is the
// better choice.
void ShmNode::make_room() {
  const std::int64_t bytes = GroupLayout(members_.size()).bytes;
  arena_->give_back(arena_->take(bytes), bytes);
}

ShmNode::~ShmNode() {
  if (std::uncaught_exceptions() > uncaught_at_start_) {
    segment(members_.rank()).header().ended_early.store(1);
    for (int m = 0; m < members_.size(); ++m) {
      ring(m);
    }
  }
}

std::string ShmNode::find_peers(const std::vector<std::string>& addresses,
                                const SegmentTable* table) {
  for (int m = 0; m < members_.size(); ++m) {
    if (m != members_.rank()) {
      const auto address = SegmentAddress::parse(addresses[static_cast<std::size_t>(m)]);
      find_peer(m, address, table);
    }
  }
  return "";
}

void ShmNode::find_peer(int member, const SegmentAddress& address, const SegmentTable* table) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  if (table != nullptr && address.pid == ::getpid()) {
    peer.segment = table->find(address);
    check(peer.segment != nullptr, "ranks of one process share a table");
    return;
  }
  peer.segment = SharedSegment::open(address);
  peer.process.reset(static_cast<int>(::syscall(SYS_pidfd_open, address.pid, 0U)));
  if (!peer.process) {
    throw ConfigError(
        fmt::format("{}, process {}, cannot be watched (pidfd_open: {}): this needs Linux 5.3 "
                    "or newer, and a container must allow it; otherwise set comm.backend=mpi",
                    members_.describe(member), address.pid, std::strerror(errno)));
  }
}

void ShmNode::retire(std::vector<Piece> pieces, const std::atomic<std::int32_t>* left, int ranks) {
  const std::lock_guard lock(mutex_);
  retired_.push_back({std::move(pieces), left, ranks});
}

void ShmNode::reclaim() {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](const Retired& group) {
    if (group.left->load() < group.ranks) {
      return false;
    }
    for (const Piece& piece : group.pieces) {
      arena_->give_back(piece.data, piece.bytes);
    }
    return true;
  });
}

void ShmNode::ring(int member) const {
  SegmentHeader& header = segment(member).header();
  if (header.sleepers.load() > 0) {
    header.bell.fetch_add(1);
    (void)::syscall(SYS_futex, word_of(header.bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

// The bell's count is read before the last call of stirred(). A ring after it changes the count, so
// that the futex does not sleep; a ring before it was for an event that stirred() sees.
void ShmNode::sleep(std::chrono::microseconds limit, const std::function<bool()>& stirred) const {
  SegmentHeader& header = segment(members_.rank()).header();
  const std::uint32_t count = header.bell.load();
  header.sleepers.fetch_add(1);
  if (!stirred()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{seconds.count(), static_cast<long>((limit - seconds).count() * 1000)};
    (void)::syscall(SYS_futex, word_of(header.bell), FUTEX_WAIT, count, &time, nullptr, 0);
  }
  header.sleepers.fetch_sub(1);
}

// A process that failed but has not ended does not count as dead: it will end the job itself, or it
// lives on.
bool ShmNode::is_dead(int member) const {
  const Peer& peer = at(member);
  if (!peer.process) {
    return peer.segment->header().ended_early.load() != 0;
  }
  pollfd process{peer.process.get(), POLLIN, 0};
  return ::poll(&process, 1, 0) == 1;
}

}  // namespace trireme
