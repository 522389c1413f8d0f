#include "mpi/session/fabric_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::string& interfaces) {
  try {
    check_fabric_settings([&](const std::string& name) -> std::optional<std::string> {
      return name == "OMPI_MCA_btl_tcp_if_include" ? std::optional(interfaces) : std::nullopt;
    });
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(FabricSettings, NamesInterfacesThatAreNotHere) {
  for (const char* absent : {"ib0", "ib0,ib1", "lo7", " ", "lo\n"}) {
    EXPECT_THAT(refusal_of(absent),
                AllOf(HasSubstr(absent), HasSubstr("no interface of this host, which has"),
                      HasSubstr("lo"), HasSubstr("OMPI_MCA_btl_tcp_if")))
        << absent;
  }
}

// MPI passes over what it does not find as long as it finds something.
TEST(FabricSettings, LeavesTheRestToMpi) {
  for (const char* fine : {"", ",", "lo", "ib0,lo", "10.0.0.0/8", "ib0,10.0.0.0/8"}) {
    EXPECT_EQ(refusal_of(fine), "") << fine;
  }
}

}  // namespace
}  // namespace trireme
