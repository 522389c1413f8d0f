#include "mpi/session/mpi_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/session/mpi_check.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

TEST(MpiSession, EveryRankKnowsAllPlaces) {
  const MpiSession& session = test_session();
  const Communicator& world = test_session().world();
  EXPECT_EQ(session.launcher(), Launcher::mpirun);
  ASSERT_EQ(static_cast<int>(session.places().size()), world.size());
  EXPECT_EQ(session.place().rank, world.rank());
  for (const RankPlace& place : session.places()) {
    EXPECT_EQ(place.host, world.host(place.rank));
    EXPECT_GE(place.binding.cores, 1);
    EXPECT_FALSE(place.binding.cpus.empty());
    EXPECT_GE(place.threads(), 1);
    EXPECT_LE(place.sharers, place.local_size);
    // mpirun has started all ranks on one machine.
    EXPECT_EQ(place.local_rank, place.rank);
    EXPECT_EQ(place.local_size, world.size());
  }
  EXPECT_THAT(session.library_version(), testing::HasSubstr("MPI"));
}

TEST(MpiCheck, CarriesTheTextOfMpi) {
  mpi_check(0, "MPI_Send");
  try {
    mpi_check(1, "MPI_Send");
    FAIL();
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("MPI_Send failed: MPI_ERR"));
  }
}

}  // namespace
}  // namespace trireme
