// DryWorld stands for the communicators of one rank when the other ranks do not exist. Operations
// transfer nothing, so that an engine on a counting device takes the memory of a real step. One
// thread.
#pragma once

#include <memory>
#include <vector>

#include "mpi/communicator.h"
#include "src/device/pool.h"
#include "src/parallel/process_grid.h"

namespace trireme {

// NcclScratch counts the scratch memory that the groups of a rank take for sums over NCCL: each
// group has a pool, which no other operation uses while one is queued.
class NcclScratch {
 public:
  Pool& add_group();
  std::int64_t reserved_bytes() const;

 private:
  std::vector<std::unique_ptr<Pool>> pools_;
};

class DryWorld : public Communicator {
 public:
  // The world of `rank`. split() returns the groups of an Engine, which it identifies by name. The
  // grid and `scratch` outlive it. scratch: null unless the groups stand for groups of NCCL.
  DryWorld(const ProcessGrid& grid, int rank, NcclScratch* scratch = nullptr);

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder order) override { order_ = order; }
  void set_deadline(std::chrono::duration<double>) override {}

 private:
  // Done says when an operation counts as finished.
  enum class Done : std::uint8_t { at_once, when_waited_for };
  DryWorld(const ProcessGrid& grid, int world_rank, int rank, int size, Done done,
           NcclScratch* scratch);
  Pending start(const OperationRequest& request) override;

  const ProcessGrid& grid_;
  int world_rank_;
  Done done_;
  NcclScratch* scratch_;
  Pool* pool_;  // of this group; null without scratch memory
  SumOrder order_ = SumOrder::tree;
};

}  // namespace trireme
