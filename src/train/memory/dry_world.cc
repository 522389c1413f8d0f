#include "src/train/memory/dry_world.h"

#include <string>
#include <vector>

#include "mpi/nccl/tree_sum_blocks.h"
#include "src/base/check.h"
#include "src/compute/counting_device.h"

namespace trireme {
namespace {

class Waited : public Pending::Operation {
 public:
  void wait() override { done_ = true; }
  bool reached() override { return done_; }
  void abandon() noexcept override {}

 private:
  bool done_ = false;
};

}  // namespace

Pool& NcclScratch::add_group() {
  pools_.push_back(std::make_unique<Pool>(kCountsCuda));
  return *pools_.back();
}

std::int64_t NcclScratch::reserved_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& pool : pools_) {
    bytes += pool->reserved_bytes();
  }
  return bytes;
}

DryWorld::DryWorld(const ProcessGrid& grid, int rank, NcclScratch* scratch)
    : DryWorld(grid, rank, rank, grid.world_size(), Done::at_once, scratch) {}

DryWorld::DryWorld(const ProcessGrid& grid, int world_rank, int rank, int size, Done done,
                   NcclScratch* scratch)
    : Communicator(GroupMembers::of_world(
          rank, std::vector<std::string>(static_cast<std::size_t>(size), "nowhere"))),
      grid_(grid),
      world_rank_(world_rank),
      done_(done),
      scratch_(scratch),
      pool_(scratch == nullptr ? nullptr : &scratch->add_group()) {}

Pending DryWorld::start(const OperationRequest& request) {
  if (pool_ != nullptr) {
    if (const std::int64_t bytes = scratch_bytes(request, order_, size()); bytes > 0) {
      (void)pool_->allocate(bytes);  // free again once the operation is queued
    }
  }
  return done_ == Done::at_once ? Pending() : Pending(std::make_shared<Waited>());
}

// The operations of dp groups end only when they are waited for, because that is when reductions
// between replicas hold most memory.
std::unique_ptr<Communicator> DryWorld::split(int, int, std::string_view name) {
  const auto group = [&](int rank, int size, Done done) {
    std::unique_ptr<Communicator> made(new DryWorld(
        grid_, world_rank_, rank, size, done, name.ends_with("control") ? nullptr : scratch_));
    made->set_sum_order(order_);
    return made;
  };
  if (name.starts_with("dp")) {
    return group(grid_.dp_rank(world_rank_), grid_.dp(), Done::when_waited_for);
  }
  if (name.starts_with("tp")) {
    return group(grid_.tp_rank(world_rank_), grid_.tp(), Done::at_once);
  }
  if (name == "pp") {
    return group(grid_.pp_rank(world_rank_), grid_.pp(), Done::at_once);
  }
  check(name == "replica", "a group of an engine");
  return group(grid_.pp_rank(world_rank_) * grid_.tp() + grid_.tp_rank(world_rank_),
               grid_.pp() * grid_.tp(), Done::at_once);
}

}  // namespace trireme
