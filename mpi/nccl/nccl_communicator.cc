#include "mpi/nccl/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "mpi/nccl/nccl_check.h"
#include "mpi/nccl/nccl_world.h"
#include "mpi/nccl/tree_sum.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr std::chrono::duration<double> kFirstDeadline = std::chrono::minutes(10);
constexpr std::chrono::duration<double> kLongestDeadline = std::chrono::hours(24 * 365 * 100);
constexpr std::int64_t kBlockElements = 64;  // blocks of a sum start at multiples of this

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      break;
  }
  throw InternalError("a reduction is over f32, f64, i32, i64 or bf16");
}

ncclRedOp_t nccl_op(ReduceOp op) {
  return op == ReduceOp::sum ? ncclSum : op == ReduceOp::max ? ncclMax : ncclMin;
}

std::size_t bytes_of(const ConstView& view) { return static_cast<std::size_t>(view.bytes()); }

// Elements [first, first + n) of a view, cut at its end.
template <class V>
V cut(const V& view, std::int64_t first, std::int64_t n) {
  const std::int64_t at = std::min(first, view.count);
  return view.slice(at, std::min(n, view.count - at));
}

// NcclGroup makes the calls between its constructor and end() one operation.
class NcclGroup {
 public:
  NcclGroup() { nccl_check(ncclGroupStart(), "ncclGroupStart"); }
  void end() { nccl_check(ncclGroupEnd(), "ncclGroupEnd"); }
};

void send_bytes(NcclChannel& channel, const ConstView& data, int to) {
  if (data.count > 0) {
    nccl_check(ncclSend(data.data, bytes_of(data), ncclUint8, to, channel.comm(), channel.stream()),
               "ncclSend", channel.comm());
  }
}

void recv_bytes(NcclChannel& channel, const View& data, int from) {
  if (data.count > 0) {
    nccl_check(
        ncclRecv(data.data, bytes_of(data), ncclUint8, from, channel.comm(), channel.stream()),
        "ncclRecv", channel.comm());
  }
}

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

}  // namespace

NcclCommunicator::NcclCommunicator(Parts parts)
    : Communicator(parts.control->members()),
      parts_(std::move(parts)),
      watch_(parts_.watch.recorder == nullptr
                 ? nullptr
                 : std::make_unique<GroupWatch>(parts_.watch, parts_.name, members())),
      scratch_(parts_.device, cuda::device_memory(parts_.device.index)),
      collective_(connect(size(), rank(), share_id(*parts_.control, 0))) {}

NcclCommunicator::~NcclCommunicator() {
  for (const auto& [key, channel] : lanes_) {
    parts_.monitor->remove(*channel);
  }
  if (collective_ != nullptr) {
    parts_.monitor->remove(*collective_);
  }
}

std::unique_ptr<NcclChannel> NcclCommunicator::connect(int size, int rank, const ncclUniqueId& id) {
  auto channel = std::make_unique<NcclChannel>(parts_.device.index, id, size, rank);
  channel->finish_connecting(connect_deadline(), own_name());
  parts_.monitor->add(*channel);
  return channel;
}

std::chrono::steady_clock::time_point NcclCommunicator::connect_deadline() const {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(parts_.deadline);
}

std::string NcclCommunicator::own_name() const { return members().describe(rank()); }

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key, std::string_view name) {
  const Watch watch = watch_ == nullptr ? Watch{} : watch_->next_split(color);
  Parts parts{parts_.control->split(color, key, fmt::format("{} control", name)),
              parts_.device,
              parts_.monitor,
              std::string(name),
              watch,
              parts_.deadline};
  auto group = std::make_unique<NcclCommunicator>(std::move(parts));
  group->set_sum_order(order_);
  return group;
}

MemorySource& NcclCommunicator::memory() { return cuda::device_memory(parts_.device.index); }

void NcclCommunicator::set_deadline(std::chrono::duration<double> deadline) {
  check(deadline.count() > 0, "a deadline is positive");
  parts_.deadline = std::min(deadline, kLongestDeadline);
  parts_.control->set_deadline(deadline);
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
  cuda::cuda_check(cudaSetDevice(parts_.device.index), "cudaSetDevice");
  const StreamEvent ready = request.after == nullptr ? StreamEvent() : request.after->record();
  channel.queue().wait(ready);
  if (collective) {
    queue_collective(request);
  } else {
    queue_transfer(channel, request);
  }
  channel.settle();
  OperationLabel label;
  label.kind = request.kind;
  label.dtype = request.from.dtype;
  label.op = request.op;
  label.root = request.peer;
  label.order = order_;
  label.bytes = request.from.bytes();
  label.number = collective ? collectives_++ : transfers_++;
  const auto limit =
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(parts_.deadline);
  auto operation = std::make_shared<NcclOperation>(
      NcclOperation::Plan{parts_.monitor, channel, label, members(), limit, watch_.get(), ready});
  parts_.monitor->watch(operation);
  return Pending(std::move(operation));
}

void NcclCommunicator::queue_collective(const OperationRequest& request) {
  NcclChannel& channel = *collective_;
  switch (request.kind) {
    case OperationKind::all_reduce:
      queue_all_reduce(request);
      return;
    case OperationKind::reduce_scatter:
      queue_reduce_scatter(request);
      return;
    case OperationKind::all_gather: {
      const View own =
          request.into.slice(rank() * (request.into.count / size()), request.into.count / size());
      nccl_check(ncclAllGather(own.data, request.into.data, bytes_of(own), ncclUint8,
                               channel.comm(), channel.stream()),
                 "ncclAllGather", channel.comm());
      return;
    }
    case OperationKind::all_to_all:
      queue_all_to_all(request);
      return;
    case OperationKind::broadcast:
      nccl_check(ncclBroadcast(request.into.data, request.into.data, bytes_of(request.into),
                               ncclUint8, request.peer, channel.comm(), channel.stream()),
                 "ncclBroadcast", channel.comm());
      return;
    default:
      queue_barrier();
      return;
  }
}

void NcclCommunicator::queue_barrier() {
  const Buffer word = scratch_.allocate(sizeof(std::int32_t));
  const View view = word.view(DType::i32);
  collective_->queue().clear(view);
  nccl_check(ncclAllReduce(view.data, view.data, 1, ncclInt32, ncclSum, collective_->comm(),
                           collective_->stream()),
             "ncclAllReduce", collective_->comm());
}

Buffer NcclCommunicator::gather_blocks(const ConstView& from, std::int64_t block,
                                       std::int64_t stride) {
  Buffer blocks = scratch_.allocate(size() * stride * size_of(from.dtype));
  const View into = blocks.view(from.dtype);
  const std::int64_t own = cut(from, rank() * block, block).count;
  NcclGroup group;
  for (int peer = 0; peer < size(); ++peer) {
    send_bytes(*collective_, cut(from, peer * block, block), peer);
    recv_bytes(*collective_, into.slice(peer * stride, own), peer);
  }
  group.end();
  return blocks;
}

void NcclCommunicator::queue_all_reduce(const OperationRequest& request) {
  NcclChannel& channel = *collective_;
  const View& into = request.into;
  if (size() == 1) {
    if (into.data != request.from.data) {
      channel.queue().copy(into, request.from);
    }
    return;
  }
  if (order_ == SumOrder::any) {
    nccl_check(
        ncclAllReduce(request.from.data, into.data, static_cast<std::size_t>(into.count),
                      nccl_type(into.dtype), nccl_op(request.op), channel.comm(), channel.stream()),
        "ncclAllReduce", channel.comm());
    return;
  }
  const std::int64_t share = (into.count + size() - 1) / size();
  const std::int64_t block = (share + kBlockElements - 1) / kBlockElements * kBlockElements;
  const Buffer blocks = gather_blocks(request.from, block, block);
  const View own = cut(into, rank() * block, block);
  reduce_in_tree(channel.stream(),
                 {blocks.data(), own.data, own.count, block, size(), into.dtype, request.op});
  NcclGroup group;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) {
      send_bytes(channel, own, peer);
      recv_bytes(channel, cut(into, peer * block, block), peer);
    }
  }
  group.end();
}

void NcclCommunicator::queue_reduce_scatter(const OperationRequest& request) {
  NcclChannel& channel = *collective_;
  const std::int64_t count = request.into.count / size();
  const View own = request.into.slice(rank() * count, count);
  if (size() == 1) {
    return;
  }
  if (order_ == SumOrder::any) {
    nccl_check(ncclReduceScatter(request.into.data, own.data, static_cast<std::size_t>(count),
                                 nccl_type(own.dtype), nccl_op(request.op), channel.comm(),
                                 channel.stream()),
               "ncclReduceScatter", channel.comm());
    return;
  }
  const std::int64_t stride = (count + kBlockElements - 1) / kBlockElements * kBlockElements;
  const Buffer blocks = gather_blocks(request.into, count, stride);
  reduce_in_tree(channel.stream(),
                 {blocks.data(), own.data, count, stride, size(), own.dtype, request.op});
}

void NcclCommunicator::queue_all_to_all(const OperationRequest& request) {
  NcclGroup group;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  for (int peer = 0; peer < size(); ++peer) {
    const std::int64_t to = request.send_counts[static_cast<std::size_t>(peer)];
    const std::int64_t from = request.recv_counts[static_cast<std::size_t>(peer)];
    send_bytes(*collective_, request.from.slice(sent, to), peer);
    recv_bytes(*collective_, request.into.slice(received, from), peer);
    sent += to;
    received += from;
  }
  group.end();
}

void NcclCommunicator::queue_transfer(NcclChannel& channel, const OperationRequest& request) {
  constexpr int kOther = 1;  // the receiver's rank in a channel of two
  if (request.kind == OperationKind::send) {
    send_bytes(channel, request.from, kOther);
  } else {
    recv_bytes(channel, request.into, 1 - kOther);
  }
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
      for (int lane = 0; lane < kTagLanes; ++lane) {
        const auto number = static_cast<std::size_t>(direction * kTagLanes + lane);
        lanes_[{sends ? receiver : sender, sends, lane}] =
            connect(2, sends ? 0 : 1, all[static_cast<std::size_t>(receiver)][number]);
      }
    }
  }
}

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> control, Device device,
                                              const Watch& watch) {
  return std::make_unique<NcclCommunicator>(NcclCommunicator::Parts{
      std::move(control), device, std::make_shared<NcclMonitor>(device.index), "world", watch,
      kFirstDeadline});
}

std::string nccl_version() {
  int version = 0;
  nccl_check(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace trireme
