#include "slurm/doctor/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

TEST(Finding, HostsWithTheSameAreOne) {
  std::vector<Finding> all;
  for (int host = 0; host < 12; ++host) {
    all.push_back(warning_of("slow", fmt::format("n{}", host), "fix"));
    all.push_back(warning_of("slow", fmt::format("n{}", host), "fix"));
  }
  all.push_back(error_of(DataError("broken"), "n1"));
  const std::vector<Finding> found = merged(all);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].what, "broken");
  EXPECT_EQ(found[1].where, "n0, n1, n2, n3, n4, n5, n6, n7 and 4 more");
  EXPECT_EQ(exit_code_of(found), ExitCode::bad_data);
}

TEST(Finding, ExitCodes) {
  EXPECT_EQ(exit_code_of({}), ExitCode::ok);
  EXPECT_EQ(exit_code_of({warning_of("w", "n", "")}), ExitCode::below_threshold);
  EXPECT_EQ(exit_code_of({warning_of("w", "n", ""), error_of(ConfigError("c"), "n")}),
            ExitCode::usage);
}

TEST(Finding, ThroughJson) {
  const std::vector<Finding> all = {warning_of("w", "n1", "r"), error_of(IoError("i"), "n2")};
  const std::vector<Finding> back = findings_from_json(nlohmann::json::parse(to_json(all).dump()));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].severity, Severity::error);
  EXPECT_EQ(back[1].code, ExitCode::io);
  EXPECT_EQ(back[0].remedy, "r");
  EXPECT_THROW(findings_from_json(nlohmann::json::parse(R"([{"severity":"error"}])")), DataError);
  EXPECT_THROW(findings_from_json(nlohmann::json::parse("{}")), DataError);
}

}  // namespace
}  // namespace trireme
