#include "mpi/communicator.h"

#include <algorithm>
#include <cstdint>

#include "mpi/blocks.h"
#include "src/base/check.h"

namespace trireme {
namespace {

template <class T>
T all_reduced(Communicator& comm, T value, ReduceOp op) {
  comm.all_reduce({&value, 1, dtype_of<T>()}, op).wait();
  return value;
}

void check_reducible(const View& data) {
  const bool known = data.dtype == DType::f32 || data.dtype == DType::f64 ||
                     data.dtype == DType::i32 || data.dtype == DType::i64 ||
                     data.dtype == DType::bf16 || data.dtype == DType::f16;
  check(known, "a reduction is over f32, f64, i32, i64, bf16 or f16");
}

View bytes_of(std::string& text) {
  return {text.data(), static_cast<std::int64_t>(text.size()), DType::u8};
}

}  // namespace

Pending Communicator::all_reduce(ConstView from, View into, ReduceOp op, Stream* after) {
  check_reducible(into);
  check(from.dtype == into.dtype && from.count == into.count,
        "all_reduce reads and writes buffers of one type and size");
  check(from.data == into.data || !overlap(from, into),
        "the buffers of an all_reduce are the same or do not overlap");
  return start(
      {.kind = OperationKind::all_reduce, .from = from, .into = into, .op = op, .after = after});
}

Pending Communicator::reduce_scatter(View data, ReduceOp op, Stream* after) {
  check_reducible(data);
  check(data.count % size() == 0, "reduce_scatter takes one block per rank, all of equal size");
  return start({.kind = OperationKind::reduce_scatter,
                .from = data,
                .into = data,
                .op = op,
                .after = after});
}

Pending Communicator::all_gather(View data, Stream* after) {
  check(data.count % size() == 0, "all_gather takes one block per rank, all of equal size");
  return start({.kind = OperationKind::all_gather, .from = data, .into = data, .after = after});
}

Pending Communicator::all_to_all(ConstView send, std::span<const std::int64_t> send_counts,
                                 View recv, std::span<const std::int64_t> recv_counts,
                                 Stream* after) {
  check_blocks(send, send_counts, recv, recv_counts, size(), rank());
  return start({.kind = OperationKind::all_to_all,
                .from = send,
                .into = recv,
                .send_counts = send_counts,
                .recv_counts = recv_counts,
                .after = after});
}

Pending Communicator::broadcast(View data, int root, Stream* after) {
  check(root >= 0 && root < size(), "the root is a rank of the group");
  return start(
      {.kind = OperationKind::broadcast, .from = data, .into = data, .peer = root, .after = after});
}

Pending Communicator::send(ConstView data, int to, int tag, Stream* after) {
  check_peer(to, tag);
  return start({.kind = OperationKind::send, .from = data, .peer = to, .tag = tag, .after = after});
}

Pending Communicator::recv(View data, int from, int tag, Stream* after) {
  check_peer(from, tag);
  return start({.kind = OperationKind::recv,
                .from = data,
                .into = data,
                .peer = from,
                .tag = tag,
                .after = after});
}

Pending Communicator::barrier() { return start({}); }

void Communicator::check_peer(int peer, int tag) const {
  check(peer >= 0 && peer < size() && peer != rank(), "a peer is another rank of the group");
  check(tag >= 0 && tag <= kMaxUserTag, "a tag lies between 0 and kMaxUserTag");
}

double all_reduce_value(Communicator& comm, double value, ReduceOp op) {
  return all_reduced(comm, value, op);
}

std::int64_t all_reduce_value(Communicator& comm, std::int64_t value, ReduceOp op) {
  return all_reduced(comm, value, op);
}

// Gathers the lengths first, and then the texts, each padded to the longest.
std::vector<std::string> all_gather_text(Communicator& comm, const std::string& text) {
  const auto size = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  std::vector<std::int64_t> lengths(size);
  lengths[rank] = static_cast<std::int64_t>(text.size());
  comm.all_gather({lengths.data(), comm.size(), DType::i64}).wait();
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string all(size * longest, '\0');
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * longest));
  comm.all_gather(bytes_of(all)).wait();
  std::vector<std::string> texts(size);
  for (std::size_t r = 0; r < size; ++r) {
    texts[r] = all.substr(r * longest, static_cast<std::size_t>(lengths[r]));
  }
  return texts;
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  comm.broadcast({&length, 1, DType::i64}, root).wait();
  std::string result = text;
  result.resize(static_cast<std::size_t>(length));
  comm.broadcast(bytes_of(result), root).wait();
  return result;
}

}  // namespace trireme
