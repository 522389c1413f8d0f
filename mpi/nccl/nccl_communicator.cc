#include "mpi/nccl/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include "mpi/links/nccl_log_file.h"
#include "mpi/nccl/nccl_check.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/printable.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

ncclUniqueId new_id() {
  ncclUniqueId id{};
  nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

// Returns the id that rank `root` of the group has made.
ncclUniqueId share_id(Communicator& control, int root) {
  ncclUniqueId id{};
  if (control.rank() == root) {
    id = new_id();
  }
  control.broadcast({&id, sizeof id, DType::u8}, root).wait();
  return id;
}

OperationLabel numbered(OperationKind kind, std::int64_t number, int root = 0) {
  OperationLabel label;
  label.kind = kind;
  label.root = root;
  label.number = number;
  return label;
}

}  // namespace

NcclCommunicator::NcclCommunicator(Parts parts)
    : Communicator(parts.control->members()),
      uncaught_at_start_(std::uncaught_exceptions()),
      parts_(std::move(parts)),
      watch_(parts_.watch.recorder == nullptr
                 ? nullptr
                 : std::make_unique<GroupWatch>(parts_.watch, parts_.name, members())),
      scratch_(parts_.device, cuda::device_memory(parts_.device.index)),
      collective_(connect(size(), rank(), share_id(*parts_.control, 0),
                          numbered(OperationKind::barrier, collectives_++))) {}

// After an error, the channels of all groups are aborted together: one alone would wait for the
// device, on which an operation of another may wait for other ranks.
NcclCommunicator::~NcclCommunicator() {
  if (std::uncaught_exceptions() > uncaught_at_start_) {
    parts_.monitor->give_up(members().describe(rank()));
  }
  const auto end = [this](NcclChannel& channel) {
    parts_.monitor->remove(channel);
    parts_.memory->remove(channel);
  };
  for (const auto& [key, channel] : lanes_) {
    end(*channel);
  }
  if (collective_ != nullptr) {
    end(*collective_);
  }
}

std::unique_ptr<NcclChannel> NcclCommunicator::connect(int size, int rank, const ncclUniqueId& id,
                                                       const OperationLabel& label) {
  auto channel = std::make_unique<NcclChannel>(parts_.device.index, id, size, rank);
  const Started started = begin(*channel, label);
  queue_or_fail(started, [&] { settle(started); });
  if (watch_ != nullptr) {
    watch_->ended(started.ticket, label, false, std::chrono::steady_clock::now());
  }
  parts_.monitor->add(*channel);
  parts_.memory->add(*channel);
  return channel;
}

std::chrono::steady_clock::duration NcclCommunicator::limit() const {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(parts_.deadline);
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key, std::string_view name) {
  const Watch watch = watch_ == nullptr ? Watch{} : watch_->next_split(color);
  (void)NcclLogFile::of_process().read();  // discard what concerns other groups
  auto group = std::make_unique<NcclCommunicator>(Parts{
      parts_.control->split(color, key, fmt::format("{} control", name)), parts_.device,
      parts_.monitor, parts_.memory, std::string(name), watch, parts_.deadline, parts_.links});
  group->set_sum_order(order_);
  group->meet();
  return group;
}

void NcclCommunicator::meet() {
  if (size() > 1) {
    barrier().wait();
    if (order_ == SumOrder::tree) {  // its sums exchange blocks between all pairs of ranks
      const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), 1);
      const Buffer blocks = scratch_.allocate(2 * size());
      const View all = blocks.view(DType::u8);
      collective_->queue().clear(all);
      all_to_all(all.slice(0, size()), counts, all.slice(size(), size()), counts).wait();
    }
  }
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  note_links(ranks);
}

void NcclCommunicator::note_links(const std::vector<int>& ranks) {
  NcclLogFile& log = NcclLogFile::of_process();
  const NcclConnections found = log.read();
  if (parts_.links == nullptr) {
    return;
  }
  std::set<std::string> kinds;
  for (Link link : found.links) {
    const auto last = static_cast<int>(ranks.size()) - 1;
    if (link.from > last || link.to > last) {
      continue;
    }
    kinds.insert(link_text(link.kind, link.gpu_direct));
    link.from = members().world_rank(ranks[static_cast<std::size_t>(link.from)]);
    link.to = members().world_rank(ranks[static_cast<std::size_t>(link.to)]);
    parts_.links->links.insert({parts_.name, link});
  }
  if (!kinds.empty()) {
    links_ = fmt::format("over {}", fmt::join(kinds, " and "));
  }
  if (found.nvls_channels > 0 && size() > 1) {
    parts_.links->nvls.insert(parts_.name);
  }
  for (const std::string& warning : found.warnings) {
    parts_.links->notes.insert("NCCL warns: " + printable(warning));
  }
  parts_.links->trouble = log.trouble();
  if (const std::string trouble = parts_.memory->trouble(); !trouble.empty()) {
    parts_.links->notes.insert(trouble);
  }
}

void NcclCommunicator::set_deadline(std::chrono::duration<double> deadline) {
  check(deadline.count() > 0, "a deadline is positive");
  parts_.deadline = std::min(deadline, kLongestNcclDeadline);
  parts_.control->set_deadline(deadline);
}

NcclCommunicator::Started NcclCommunicator::begin(NcclChannel& channel, OperationLabel label) {
  const FlightTicket ticket =
      watch_ == nullptr ? 0 : watch_->queued(label, std::chrono::steady_clock::now());
  return {channel, label, ticket};
}

template <class Queue>
void NcclCommunicator::queue_or_fail(const Started& started, Queue queue) {
  try {
    queue();
  } catch (...) {
    if (watch_ != nullptr) {
      watch_->ended(started.ticket, started.label, true, std::chrono::steady_clock::now());
    }
    std::rethrow_exception(parts_.monitor->fail(std::current_exception()));
  }
}

// The deadline starts with this call, during which NCCL may wait for other ranks to connect.
void NcclCommunicator::settle(const Started& started) {
  constexpr int kQuickLooks = 2000;
  constexpr std::chrono::microseconds kPause{50};
  const auto begun = std::chrono::steady_clock::now();
  for (int looks = 0; !started.channel.progress(); ++looks) {
    const bool is_overdue = std::chrono::steady_clock::now() - begun >= limit();
    if (is_overdue || (watch_ != nullptr && watch_->is_overdue_elsewhere(started.label))) {
      std::rethrow_exception(
          describe_hang({started.label, members(), limit(), watch_.get(), links_, is_overdue}));
    }
    if (looks < kQuickLooks) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  parts_.monitor->check_failed();
}

Pending NcclCommunicator::start(const OperationRequest& request) {
  const bool on_device = (request.from.empty() || request.from.device == parts_.device) &&
                         (request.into.empty() || request.into.device == parts_.device);
  check(on_device, "this communicator handles the memory of its CUDA device only");
  if (request.kind == OperationKind::all_reduce) {
    fault("comm.all_reduce");
  }
  parts_.monitor->check_failed();
  const bool collective = is_collective(request.kind);
  NcclChannel& channel = collective ? *collective_ : lane(request);
  cuda::use_device(parts_.device.index);
  const StreamEvent ready = request.after == nullptr ? StreamEvent() : request.after->record();
  channel.queue().wait(ready);
  OperationLabel label = label_of(request, order_);
  label.number = collective ? collectives_++ : transfers_++;
  const Started started = begin(channel, label);
  queue_or_fail(started, [&] {
    if (collective) {
      queue_collective(started, request);
    } else {
      queue_transfer(started, request);
    }
  });
  auto operation = std::make_shared<NcclOperation>(
      NcclOperation::Plan{parts_.monitor, channel, started.label, members(), limit(), watch_.get(),
                          started.ticket, ready, links_});
  parts_.monitor->watch(operation);
  return Pending(std::move(operation));
}

NcclChannel& NcclCommunicator::lane(const OperationRequest& request) {
  const int next = (rank() + 1) % size();
  const int previous = (rank() + size() - 1) % size();
  check(request.peer == next || request.peer == previous,
        "over NCCL, a rank sends to its neighbours in the ring of ranks");
  check(!lanes_.empty(), "a group is prepared before its first send or receive");
  return *lanes_.at({request.peer, request.kind == OperationKind::send, lane_of(request.tag)});
}

// The receiver makes the id of a channel.
void NcclCommunicator::prepare_transfers() {
  if (size() == 1 || !lanes_.empty()) {
    return;
  }
  using Ids = std::array<ncclUniqueId, 2 * kTagLanes>;
  std::vector<Ids> all(static_cast<std::size_t>(size()));
  Ids& own = all[static_cast<std::size_t>(rank())];
  std::generate(own.begin(), own.end(), new_id);
  parts_.control
      ->all_gather({all.data(), static_cast<std::int64_t>(all.size() * sizeof(Ids)), DType::u8})
      .wait();
  // Channels are connected one after another, in one order on all ranks.
  for (int receiver = 0; receiver < size(); ++receiver) {
    for (const int direction : {0, 1}) {
      const int sender = (receiver + (direction == 0 ? size() - 1 : 1)) % size();
      if ((rank() != receiver && rank() != sender) || (size() == 2 && direction == 1)) {
        continue;
      }
      const bool sends = rank() == sender;
      const int peer = sends ? receiver : sender;
      for (int lane = 0; lane < kTagLanes; ++lane) {
        const auto number = static_cast<std::size_t>(direction * kTagLanes + lane);
        lanes_[{peer, sends, lane}] = connect(
            2, sends ? 0 : 1, all[static_cast<std::size_t>(receiver)][number],
            numbered(sends ? OperationKind::send : OperationKind::recv, transfers_++, peer));
        meet_over(lane, peer, sends);
      }
    }
  }
}

void NcclCommunicator::meet_over(int lane, int peer, bool sends) {
  const Buffer byte = scratch_.allocate(1);
  const View view = byte.view(DType::u8);
  collective_->queue().clear(view);
  collective_->queue().record().wait();
  const int tag = lane * kTagsPerLane;
  (sends ? send(view, peer, tag) : recv(view, peer, tag)).wait();
  note_links(sends ? std::vector<int>{rank(), peer} : std::vector<int>{peer, rank()});
}

}  // namespace trireme
