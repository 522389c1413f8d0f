#include "mpi/session/mpi_native.h"

#include <limits>

#include <mpi.h>

#include "mpi/session/mpi_check.h"
#include "mpi/session/mpi_session.h"

namespace trireme {
namespace {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return MPI_UINT16_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::u32:
      return MPI_UINT32_T;
  }
  throw InternalError("unknown element type");
}

MPI_Op mpi_op(DType dtype, ReduceOp op) {
  check(MpiNative::can_reduce(dtype), "MPI does not reduce numbers of 2 bytes");
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::min:
      return MPI_MIN;
  }
  throw InternalError("unknown reduction");
}

int mpi_count(std::int64_t count) {
  if (count > std::numeric_limits<int>::max()) {
    throw ConfigError(fmt::format(
        "MPI's own operations take at most {} elements, not {}: measure smaller sizes with --peer",
        std::numeric_limits<int>::max(), count));
  }
  return static_cast<int>(count);
}

constexpr int kTag = 1;  // of all messages between two ranks

// Returns MPI_IN_PLACE for an empty view.
const void* sent(const ConstView& send) { return send.empty() ? MPI_IN_PLACE : send.data; }

void wait_all(std::vector<MPI_Request>& requests) {
  mpi_check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

}  // namespace

MpiNative::MpiNative(const MpiSession& session) {
  if (session.launcher() == Launcher::alone) {
    throw ConfigError("there is no MPI to compare with: start the benchmark with mpirun or srun");
  }
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

void MpiNative::all_reduce(ConstView send, View recv, ReduceOp op) {
  mpi_check(MPI_Allreduce(sent(send), recv.data, mpi_count(recv.count), mpi_type(recv.dtype),
                          mpi_op(recv.dtype, op), MPI_COMM_WORLD),
            "MPI_Allreduce");
}

void MpiNative::reduce_scatter(ConstView send, View recv, ReduceOp op) {
  const std::int64_t block = send.empty() ? recv.count / size_ : recv.count;
  mpi_check(MPI_Reduce_scatter_block(sent(send), recv.data, mpi_count(block), mpi_type(recv.dtype),
                                     mpi_op(recv.dtype, op), MPI_COMM_WORLD),
            "MPI_Reduce_scatter_block");
}

void MpiNative::all_gather(ConstView send, View recv) {
  const int block = mpi_count(recv.count / size_);
  const MPI_Datatype type = mpi_type(recv.dtype);
  mpi_check(MPI_Allgather(sent(send), block, type, recv.data, block, type, MPI_COMM_WORLD),
            "MPI_Allgather");
}

void MpiNative::all_to_all(ConstView send, View recv) {
  (void)mpi_count(recv.count);
  const int block = static_cast<int>(recv.count / size_);
  counts_.assign(static_cast<std::size_t>(size_), block);
  offsets_.resize(counts_.size());
  for (int rank = 0; rank < size_; ++rank) {
    offsets_[static_cast<std::size_t>(rank)] = rank * block;
  }
  const MPI_Datatype type = mpi_type(recv.dtype);
  mpi_check(MPI_Alltoallv(sent(send), counts_.data(), offsets_.data(), type, recv.data,
                          counts_.data(), offsets_.data(), type, MPI_COMM_WORLD),
            "MPI_Alltoallv");
}

void MpiNative::broadcast(View data, int root) {
  mpi_check(MPI_Bcast(data.data, mpi_count(data.count), mpi_type(data.dtype), root, MPI_COMM_WORLD),
            "MPI_Bcast");
}

void MpiNative::barrier() { mpi_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

void MpiNative::send(ConstView data, int peer) {
  mpi_check(
      MPI_Send(data.data, mpi_count(data.count), mpi_type(data.dtype), peer, kTag, MPI_COMM_WORLD),
      "MPI_Send");
}

void MpiNative::recv(View data, int peer) {
  mpi_check(MPI_Recv(data.data, mpi_count(data.count), mpi_type(data.dtype), peer, kTag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
}

void MpiNative::send_window(ConstView data, int count, int peer) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
  for (MPI_Request& request : requests) {
    mpi_check(MPI_Isend(data.data, mpi_count(data.count), mpi_type(data.dtype), peer, kTag,
                        MPI_COMM_WORLD, &request),
              "MPI_Isend");
  }
  wait_all(requests);
}

void MpiNative::recv_window(View data, int count, int peer) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
  for (MPI_Request& request : requests) {
    mpi_check(MPI_Irecv(data.data, mpi_count(data.count), mpi_type(data.dtype), peer, kTag,
                        MPI_COMM_WORLD, &request),
              "MPI_Irecv");
  }
  wait_all(requests);
}

}  // namespace trireme
