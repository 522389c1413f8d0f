// Runs schedules on the ranks that mpirun started, over MPI itself and over the host's shared
// memory.
#include "src/parallel/pipeline/pipeline_runner.h"

#include <gtest/gtest.h>

#include "tests/parallel/pipeline/toy_stage.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

// 1 MiB is more than MPI sends without waiting for the receiver.
const Shape kActivation{4, 256, 256};

void run_schedules(Communicator& pp) {
  const int p = pp.size();
  pp.set_deadline(std::chrono::seconds(60));
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    run_toy(pp, schedule, {p, 1, 6, true}, kActivation);
    run_toy(pp, schedule, {p, 1, 2, false}, kActivation, 1);
  }
  run_toy(pp, PipelineSchedule::interleaved, {p, 2, 2 * std::int64_t{p}, true}, kActivation);
  run_toy(pp, PipelineSchedule::interleaved, {p, 3, p, true}, Shape{2, 3, 5}, 20);
}

TEST(PipelineOnRanks, OverMpi) { run_schedules(test_session().world()); }

TEST(PipelineOnRanks, OverSharedMemory) {
  run_schedules(*test_session().make_world(Backend::automatic));
}

TEST(PipelineOnRanks, TwoReplicas) {
  Communicator& world = test_session().world();
  if (world.size() % 2 == 0) {
    run_schedules(*world.split(world.rank() % 2, world.rank(), "pp"));
  }
}

}  // namespace
}  // namespace trireme
