#include "src/base/node_name.h"

#include <gtest/gtest.h>

#include "src/base/log.h"
#include "tests/support/environment_variables.h"

namespace trireme {
namespace {

TEST(NodeName, IsThatOfSlurmWhereItIsKnown) {
  EnvironmentVariables variables;
  variables.set("SLURMD_NODENAME", std::nullopt);
  EXPECT_EQ(node_name(), host_name());
  variables.set("SLURMD_NODENAME", "n7");
  EXPECT_EQ(node_name(), "n7");
  for (const std::string& no_name :
       {std::string(), std::string("a b"), std::string("-n1"), std::string("n1\x1b[2J"),
        std::string("<b>"), std::string(256, 'n')}) {
    variables.set("SLURMD_NODENAME", no_name);
    EXPECT_EQ(node_name(), host_name()) << no_name;
  }
}

}  // namespace
}  // namespace trireme
