#include "mpi/hierarchy/hierarchical_algorithms.h"

#include <algorithm>
#include <cstring>

#include "mpi/blocks.h"
#include "mpi/collective/combine.h"
#include "mpi/collective/greeting.h"
#include "src/device/pool.h"

namespace trireme {
namespace {

// Up to this size, the number of messages matters more than their bytes.
constexpr std::int64_t kWholeBytes = 32 << 10;
// bf16 data is widened and reduced this many elements at a time, which bounds the memory.
constexpr std::int64_t kWidenedElements = std::int64_t{4} << 20;

class HierarchicalAlgorithms : public Algorithms {
 public:
  explicit HierarchicalAlgorithms(HierarchicalTransport& transport)
      : transport_(transport),
        layout_(transport.layout()),
        flat_(make_transfer_algorithms()),
        local_(transport.local()->make_algorithms()),
        across_(transport.across()->make_algorithms()),
        pool_(Device::cpu(), memory_of(transport)) {}

  void all_reduce(Exchange& exchange, View data, ReduceOp op) override;
  void reduce_scatter(Exchange& exchange, View data, ReduceOp op) override;
  void all_gather(Exchange& exchange, View data) override;
  void all_to_all(Exchange& exchange, const AllToAll& blocks) override {
    flat_->all_to_all(exchange, blocks);
  }
  void broadcast(Exchange& exchange, View data, int root) override;
  void barrier(Exchange& exchange) override;

 private:
  static MemorySource& memory_of(HierarchicalTransport& transport) {
    return transport.memory() == nullptr ? host_memory() : *transport.memory();
  }
  // Runs one part of an operation to its end on one of the two transports.
  template <class Part>
  void run(Exchange& exchange, Transport& transport, Part part) {
    Exchange own = exchange.over(transport);
    part(own);
    own.wait_all();
  }
  template <class Part>
  void in_host(Exchange& exchange, Part part) {
    run(exchange, *transport_.local(), part);
  }
  template <class Part>
  void across_hosts(Exchange& exchange, Part part) {
    run(exchange, *transport_.across(), part);
  }
  // Returns whether summing inside hosts first gives the order that was requested.
  bool may_regroup(const Exchange& exchange) const {
    return layout_.keeps_tree_order || exchange.label().order == SumOrder::any;
  }
  void all_reduce_in_type(Exchange& exchange, View data, ReduceOp op);
  void reduce_whole(Exchange& exchange, View data, ReduceOp op);
  void reduce_aside(Exchange& exchange, View data, ReduceOp op);
  void reduce_parts(Exchange& exchange, View data, ReduceOp op);
  View block(const View& data, int host, std::int64_t count) const {
    return data.slice((host * layout_.per_host() + layout_.local_rank) * count, count);
  }

  HierarchicalTransport& transport_;
  const HostLayout& layout_;
  std::unique_ptr<Algorithms> flat_;
  std::unique_ptr<Algorithms> local_;
  std::unique_ptr<Algorithms> across_;
  Pool pool_;
  Scratch scratch_;
};

void HierarchicalAlgorithms::reduce_whole(Exchange& exchange, View data, ReduceOp op) {
  in_host(exchange, [&](Exchange& own) { local_->all_reduce(own, data, op); });
  across_hosts(exchange, [&](Exchange& own) { across_->all_reduce(own, data, op); });
}

// data.count is a multiple of the number of ranks per host.
void HierarchicalAlgorithms::reduce_parts(Exchange& exchange, View data, ReduceOp op) {
  const std::int64_t part = data.count / layout_.per_host();
  const View own_part = data.slice(layout_.local_rank * part, part);
  in_host(exchange, [&](Exchange& own) { local_->reduce_scatter(own, data, op); });
  across_hosts(exchange, [&](Exchange& own) { across_->all_reduce(own, own_part, op); });
  in_host(exchange, [&](Exchange& own) { local_->all_gather(own, data); });
}

// Reduces a copy. The labels of small operations travel with their data, so the caller's buffer is
// written only after all labels have agreed.
void HierarchicalAlgorithms::reduce_aside(Exchange& exchange, View data, ReduceOp op) {
  const bool widens = data.dtype == DType::bf16;
  const DType dtype = widens ? DType::f32 : data.dtype;
  const Buffer buffer = pool_.allocate(data.count * size_of(dtype));
  const View aside = {buffer.data(), data.count, dtype};
  if (widens) {
    widen(static_cast<const bf16*>(data.data), static_cast<float*>(aside.data), data.count);
  } else {
    copy_block(data, aside);
  }
  reduce_whole(exchange, aside, op);
  if (widens) {
    narrow(static_cast<const float*>(aside.data), static_cast<bf16*>(data.data), data.count);
  } else {
    copy_block(aside, data);
  }
}

void HierarchicalAlgorithms::all_reduce_in_type(Exchange& exchange, View data, ReduceOp op) {
  const std::int64_t rest = data.count % layout_.per_host();
  reduce_parts(exchange, data.slice(0, data.count - rest), op);
  if (rest > 0) {
    reduce_whole(exchange, data.slice(data.count - rest, rest), op);
  }
}

// bf16 is rounded once, after the sum over all ranks, as on every other transport.
void HierarchicalAlgorithms::all_reduce(Exchange& exchange, View data, ReduceOp op) {
  if (!may_regroup(exchange)) {
    flat_->all_reduce(exchange, data, op);
    return;
  }
  if (data.bytes() <= kWholeBytes) {
    reduce_aside(exchange, data, op);
    return;
  }
  greet(exchange, scratch_);
  if (data.dtype != DType::bf16) {
    all_reduce_in_type(exchange, data, op);
    return;
  }
  for (std::int64_t first = 0; first < data.count; first += kWidenedElements) {
    const std::int64_t n = std::min(kWidenedElements, data.count - first);
    const Buffer buffer = pool_.allocate(n * size_of(DType::f32));
    auto* const wide = static_cast<float*>(buffer.data());
    auto* const narrowed = static_cast<bf16*>(data.data) + first;
    widen(narrowed, wide, n);
    all_reduce_in_type(exchange, {wide, n, DType::f32}, op);
    narrow(wide, narrowed, n);
  }
}

void HierarchicalAlgorithms::reduce_scatter(Exchange& exchange, View data, ReduceOp op) {
  if (!may_regroup(exchange) || data.dtype == DType::bf16) {
    flat_->reduce_scatter(exchange, data, op);
    return;
  }
  greet(exchange, scratch_);
  const std::int64_t count = data.count / exchange.size();
  const std::int64_t host_count = count * layout_.per_host();
  const Buffer buffer = pool_.allocate(layout_.hosts() * count * size_of(data.dtype));
  const View blocks = {buffer.data(), layout_.hosts() * count, data.dtype};
  for (int host = 0; host < layout_.hosts(); ++host) {
    const View of_host = data.slice(host * host_count, host_count);
    in_host(exchange, [&](Exchange& own) { local_->reduce_scatter(own, of_host, op); });
    copy_block(block(data, host, count), blocks.slice(host * count, count));
  }
  across_hosts(exchange, [&](Exchange& own) { across_->reduce_scatter(own, blocks, op); });
  const int own_host = exchange.rank() / layout_.per_host();
  copy_block(blocks.slice(own_host * count, count), block(data, own_host, count));
}

void HierarchicalAlgorithms::all_gather(Exchange& exchange, View data) {
  greet(exchange, scratch_);
  const std::int64_t count = data.count / exchange.size();
  const std::int64_t host_count = count * layout_.per_host();
  const int own_host = exchange.rank() / layout_.per_host();
  const Buffer buffer = pool_.allocate(layout_.hosts() * count * size_of(data.dtype));
  const View blocks = {buffer.data(), layout_.hosts() * count, data.dtype};
  copy_block(block(data, own_host, count), blocks.slice(own_host * count, count));
  across_hosts(exchange, [&](Exchange& own) { across_->all_gather(own, blocks); });
  for (int host = 0; host < layout_.hosts(); ++host) {
    copy_block(blocks.slice(host * count, count), block(data, host, count));
    const View of_host = data.slice(host * host_count, host_count);
    in_host(exchange, [&](Exchange& own) { local_->all_gather(own, of_host); });
  }
}

void HierarchicalAlgorithms::broadcast(Exchange& exchange, View data, int root) {
  greet(exchange, scratch_);
  const int root_host = root / layout_.per_host();
  const int root_local = root % layout_.per_host();
  if (layout_.local_rank == root_local) {
    across_hosts(exchange, [&](Exchange& own) { across_->broadcast(own, data, root_host); });
  }
  in_host(exchange, [&](Exchange& own) { local_->broadcast(own, data, root_local); });
}

void HierarchicalAlgorithms::barrier(Exchange& exchange) {
  in_host(exchange, [&](Exchange& own) { local_->barrier(own); });
  across_hosts(exchange, [&](Exchange& own) { across_->barrier(own); });
}

}  // namespace

std::unique_ptr<Algorithms> make_hierarchical_algorithms(HierarchicalTransport& transport) {
  if (transport.across() == nullptr) {
    return make_transfer_algorithms();
  }
  return std::make_unique<HierarchicalAlgorithms>(transport);
}

}  // namespace trireme
