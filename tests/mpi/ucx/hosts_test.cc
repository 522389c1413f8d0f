// Runs on the hosts of tests/support/hosts.py, which must be distinguished from each other.
#include <cstdlib>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

TEST(Hosts, AreToldFromOneAnother) {
  const char* const setting = std::getenv("TRIREME_HOSTS");
  if (setting == nullptr) {
    GTEST_SKIP() << "needs several hosts: run this program under tests/support/hosts.py";
  }
  int hosts = 0;
  std::istringstream words(setting);
  for (std::string word; words >> word;) {
    ++hosts;
  }
  const auto& places = test_session().places();
  const int ranks_per_host = static_cast<int>(places.size()) / hosts;
  std::set<std::string> names;
  for (const auto& place : places) {
    names.insert(place.host);
    EXPECT_EQ(place.host, "host" + std::to_string(place.rank / ranks_per_host));
    EXPECT_EQ(place.local_size, ranks_per_host);
    EXPECT_EQ(place.local_rank, place.rank % ranks_per_host);
  }
  EXPECT_EQ(static_cast<int>(names.size()), hosts);
}

}  // namespace
}  // namespace trireme
