#include "mpi/collective/ring.h"

#include "mpi/collective/combine.h"

namespace trireme {
namespace {

View block_of(const View& data, int size, int number) {
  const std::int64_t first = data.count * number / size;
  return data.slice(first, data.count * (number + 1) / size - first);
}

// Returns `number` modulo `size`, which is never negative.
int around(int number, int size) { return (number % size + size) % size; }

}  // namespace

// Block r starts at rank r + 1 and travels around the ring to rank r.
void ring_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  const int size = exchange.size();
  const int rank = exchange.rank();
  std::byte* const received = scratch.bytes(block_of(data, size, size - 1).bytes() + 8);
  for (int step = 1; step < size; ++step) {
    const View in = block_of(data, size, around(rank - step - 1, size));
    const View out = block_of(data, size, around(rank - step, size));
    run_recv(exchange, {received, in.count, in.dtype, in.device}, around(rank - 1, size),
             kCollectiveTag);
    run_send(exchange, out, around(rank + 1, size), kCollectiveTag);
    exchange.wait_all();
    combine(in, received, op);
  }
}

void ring_gather(Exchange& exchange, const View& data) {
  const int size = exchange.size();
  const int rank = exchange.rank();
  for (int step = 0; step < size - 1; ++step) {
    run_recv(exchange, block_of(data, size, around(rank - step - 1, size)), around(rank - 1, size),
             kCollectiveTag);
    run_send(exchange, block_of(data, size, around(rank - step, size)), around(rank + 1, size),
             kCollectiveTag);
    exchange.wait_all();
  }
}

}  // namespace trireme
