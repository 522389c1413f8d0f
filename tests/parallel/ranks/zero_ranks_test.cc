// Tests that ZeRO on the ranks that mpirun started gives the bits of one rank alone.
#include "mpi/self_communicator.h"
#include "tests/parallel/zero_run.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

TEST(ZeroRanks, EveryLevelGivesTheBitsOfOneRank) {
  Communicator& world = test_session().world();
  world.set_deadline(std::chrono::seconds(60));
  for (const DType compute : {DType::f32, DType::bf16}) {
    ZeroPlan plan{.compute = compute, .steps = 2};
    SelfCommunicator alone;
    const ZeroOutcome expected = ZeroRun(alone, plan).run();
    for (plan.level = 0; plan.level <= 3; ++plan.level) {
      EXPECT_TRUE(ZeroRun(world, plan).run() == expected) << "ZeRO " << plan.level;
    }
  }
}

}  // namespace
}  // namespace trireme
