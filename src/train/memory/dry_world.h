// DryWorld stands for the communicators of one rank when the other ranks do not exist. Operations
// transfer nothing, so that an engine on a counting device takes the memory of a real step. One
// thread.
#pragma once

#include <memory>

#include "mpi/communicator.h"
#include "src/parallel/process_grid.h"

namespace trireme {

class DryWorld : public Communicator {
 public:
  // The world of `rank`. split() returns the groups of an Engine, which it identifies by name. The
  // grid outlives it.
  DryWorld(const ProcessGrid& grid, int rank);

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder) override {}
  void set_deadline(std::chrono::duration<double>) override {}

 private:
  // Done says when an operation counts as finished.
  enum class Done : std::uint8_t { at_once, when_waited_for };
  DryWorld(const ProcessGrid& grid, int world_rank, int rank, int size, Done done);
  Pending start(const OperationRequest&) override;

  const ProcessGrid& grid_;
  int world_rank_;
  Done done_;
};

}  // namespace trireme
