#include "src/app/access/shown_run.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(ShownRun, RedactsEachValueOfTheConfigurationByItself) {
  const std::string text =
      "launch:\n  on_event: \"curl -H \\\"Authorization: Bearer Abc123def456\\\" https://x/\"\n"
      "train:\n  steps: 2\nhub:\n  token: 4711\n  login: [curl, -u, 'jane:x']\n";
  RunFolder run;
  run.name = "token=Abc123def";
  run.config = text;
  run.settings = parse_config(text, "");
  run.config_error = "password: x";
  run.remarks = {"cannot read runs/token=Abc123def"};
  redact_run(run);
  ASSERT_EQ(run.settings.size(), 4U);
  EXPECT_EQ(run.settings[0].value.items[0], "curl -H \"Authorization: REDACTED\" https://x/");
  EXPECT_EQ(run.settings[1].value.items[0], "2");
  EXPECT_EQ(run.settings[2].value.items[0], "REDACTED");
  EXPECT_EQ(run.settings[3].value.to_yaml(), "[curl, -u, REDACTED]");
  EXPECT_EQ(parse_config(run.config, "").size(), 4U);
  EXPECT_EQ(run.name, "token=REDACTED");
  EXPECT_EQ(run.config_error, "password: REDACTED");
  EXPECT_EQ(run.remarks[0], "cannot read runs/token=REDACTED");
}

}  // namespace
}  // namespace trireme
