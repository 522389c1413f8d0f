// Queues each kind of operation of an NcclCommunicator on the stream of its channel.
#include <algorithm>

#include "mpi/nccl/nccl_check.h"
#include "mpi/nccl/nccl_communicator.h"
#include "mpi/nccl/tree_sum.h"
#include "mpi/nccl/tree_sum_blocks.h"
#include "src/base/error.h"

namespace trireme {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      break;
  }
  throw InternalError("a reduction over NCCL is over f32, f64, i32, i64, bf16 or f16");
}

ncclRedOp_t nccl_op(ReduceOp op) {
  return op == ReduceOp::sum ? ncclSum : op == ReduceOp::max ? ncclMax : ncclMin;
}

std::size_t bytes_of(const ConstView& view) { return static_cast<std::size_t>(view.bytes()); }

// Returns elements [first, first + n) of a view, or fewer if the view ends before.
template <class V>
V cut(const V& view, std::int64_t first, std::int64_t n) {
  const std::int64_t at = std::min(first, view.count);
  return view.slice(at, std::min(n, view.count - at));
}

// NcclGroup makes the calls between its constructor and end() one operation.
class NcclGroup {
 public:
  NcclGroup() { nccl_check(ncclGroupStart(), "ncclGroupStart"); }
  ~NcclGroup() {
    if (!has_ended_) {
      (void)ncclGroupEnd();
    }
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() {
    has_ended_ = true;
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  bool has_ended_ = false;
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

}  // namespace

template <class Call>
void NcclCommunicator::call(const Started& started, Call call) {
  {
    const std::unique_lock<std::mutex> lock = started.channel.use();
    if (lock.owns_lock()) {
      call();
    }
  }
  parts_.monitor->check_failed();  // throws if the channel has been aborted
  settle(started);
}

void NcclCommunicator::queue_collective(const Started& started, const OperationRequest& request) {
  switch (request.kind) {
    case OperationKind::all_reduce:
      queue_all_reduce(started, request);
      return;
    case OperationKind::reduce_scatter:
      queue_reduce_scatter(started, request);
      return;
    case OperationKind::all_gather:
      queue_all_gather(started, request.into);
      return;
    case OperationKind::all_to_all:
      queue_all_to_all(started, request);
      return;
    case OperationKind::broadcast:
      call(started, [&] {
        nccl_check(
            ncclBroadcast(request.into.data, request.into.data, bytes_of(request.into), ncclUint8,
                          request.peer, started.channel.comm(), started.channel.stream()),
            "ncclBroadcast", started.channel.comm());
      });
      return;
    default:
      queue_barrier(started);
      return;
  }
}

void NcclCommunicator::queue_barrier(const Started& started) {
  const Buffer word = scratch_.allocate(sizeof(std::int32_t));
  const View view = word.view(DType::i32);
  started.channel.queue().clear(view);
  call(started, [&] {
    nccl_check(ncclAllReduce(view.data, view.data, 1, ncclInt32, ncclSum, started.channel.comm(),
                             started.channel.stream()),
               "ncclAllReduce", started.channel.comm());
  });
}

void NcclCommunicator::queue_all_gather(const Started& started, const View& into) {
  const View own = into.slice(rank() * (into.count / size()), into.count / size());
  call(started, [&] {
    nccl_check(ncclAllGather(own.data, into.data, bytes_of(own), ncclUint8, started.channel.comm(),
                             started.channel.stream()),
               "ncclAllGather", started.channel.comm());
  });
}

Buffer NcclCommunicator::gather_blocks(const Started& started, const ConstView& from,
                                       std::int64_t block, std::int64_t stride) {
  Buffer blocks = scratch_.allocate(size() * stride * size_of(from.dtype));
  const View into = blocks.view(from.dtype);
  const std::int64_t own = cut(from, rank() * block, block).count;
  call(started, [&] {
    NcclGroup group;
    for (int peer = 0; peer < size(); ++peer) {
      send_bytes(started.channel, cut(from, peer * block, block), peer);
      recv_bytes(started.channel, into.slice(peer * stride, own), peer);
    }
    group.end();
  });
  return blocks;
}

void NcclCommunicator::queue_all_reduce(const Started& started, const OperationRequest& request) {
  NcclChannel& channel = started.channel;
  const View& into = request.into;
  if (size() == 1) {
    if (into.data != request.from.data) {
      channel.queue().copy(into, request.from);
    }
    return;
  }
  if (order_ == SumOrder::any) {
    call(started, [&] {
      nccl_check(ncclAllReduce(request.from.data, into.data, static_cast<std::size_t>(into.count),
                               nccl_type(into.dtype), nccl_op(request.op), channel.comm(),
                               channel.stream()),
                 "ncclAllReduce", channel.comm());
    });
    return;
  }
  const TreeSumBlocks plan = all_reduce_blocks(into.count, size());
  const Buffer blocks = gather_blocks(started, request.from, plan.block, plan.stride);
  const View own = cut(into, rank() * plan.block, plan.block);
  reduce_in_tree(channel.stream(),
                 {blocks.data(), own.data, own.count, plan.stride, size(), into.dtype, request.op});
  call(started, [&] {
    NcclGroup group;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) {
        send_bytes(channel, own, peer);
        recv_bytes(channel, cut(into, peer * plan.block, plan.block), peer);
      }
    }
    group.end();
  });
}

void NcclCommunicator::queue_reduce_scatter(const Started& started,
                                            const OperationRequest& request) {
  NcclChannel& channel = started.channel;
  const std::int64_t count = request.into.count / size();
  const View own = request.into.slice(rank() * count, count);
  if (size() == 1) {
    return;
  }
  if (order_ == SumOrder::any) {
    call(started, [&] {
      nccl_check(ncclReduceScatter(request.into.data, own.data, static_cast<std::size_t>(count),
                                   nccl_type(own.dtype), nccl_op(request.op), channel.comm(),
                                   channel.stream()),
                 "ncclReduceScatter", channel.comm());
    });
    return;
  }
  const TreeSumBlocks plan = reduce_scatter_blocks(request.into.count, size());
  const Buffer blocks = gather_blocks(started, request.into, plan.block, plan.stride);
  reduce_in_tree(channel.stream(),
                 {blocks.data(), own.data, count, plan.stride, size(), own.dtype, request.op});
}

void NcclCommunicator::queue_all_to_all(const Started& started, const OperationRequest& request) {
  call(started, [&] {
    NcclGroup group;
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int peer = 0; peer < size(); ++peer) {
      const std::int64_t to = request.send_counts[static_cast<std::size_t>(peer)];
      const std::int64_t from = request.recv_counts[static_cast<std::size_t>(peer)];
      send_bytes(started.channel, request.from.slice(sent, to), peer);
      recv_bytes(started.channel, request.into.slice(received, from), peer);
      sent += to;
      received += from;
    }
    group.end();
  });
}

void NcclCommunicator::queue_transfer(const Started& started, const OperationRequest& request) {
  constexpr int kOther = 1;  // the receiver's rank in a channel of two
  call(started, [&] {
    if (request.kind == OperationKind::send) {
      send_bytes(started.channel, request.from, kOther);
    } else {
      recv_bytes(started.channel, request.into, 1 - kOther);
    }
  });
}

}  // namespace trireme
