#include "src/app/site/man_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/train/run/run_config.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ManPages, SayWhatHelpSays) {
  CommandLine app("Do things", "trireme");
  CommandLine& data = app.add_command("data", "Look after data");
  data.require_command();
  CommandLine& pack = data.add_command("pack", "Pack text");
  data.add_hidden_command("secret", "Not for users");
  std::string out;
  int size = 3;
  std::vector<std::string> inputs;
  pack.add_option("-o,--out", out, "Where it goes").type_name("DIR").required();
  pack.add_option("--size", size, "How big");
  pack.add_option("INPUT", inputs, "Files").required();
  pack.footer("Take care.\nExample:\n  .dots and 'quotes' \\ back\\slashes stay\n");
  const auto pages = man_pages(app);
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_THAT(pages.at("trireme.1"), HasSubstr(".BR trireme\\-data (1)\nLook after data.\n"));
  const std::string page = pages.at("trireme-data.1");
  for (const char* words :
       {".TH trireme\\-data 1", ".SH SYNOPSIS\n.B trireme data pack\n",
        "[OPTION]... \\-\\-out DIR INPUT...\n", ".SH DESCRIPTION\nLook after data.\n",
        ".SS trireme data pack\nPack text.\n.PP\nTake care.\n",
        ".B \\-o, \\-\\-out DIR\nWhere it goes.\n", ".B \\-\\-size N\nHow big (default: 3).\n",
        ".SH EXAMPLES\n.nf\n\\&.dots and \\(aqquotes\\(aq \\e back\\eslashes stay\n.fi\n",
        ".SH ENVIRONMENT\n", "NO_COLOR", ".SH FILES\n", "manifest.json", ".SH EXIT STATUS\n",
        ".SH SEE ALSO\n"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  EXPECT_THAT(page, Not(HasSubstr("secret")));
}

TEST(ManPages, ASubcommandIsOnThePageOfItsCommand) {
  CommandLine app("Do things", "trireme");
  app.add_command("data", "Look after data").add_command("pack", "Pack text");
  add_man_command(app);
  testing::internal::CaptureStdout();
  app.parse({"man", "data", "pack"});
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr(".SS trireme data pack\n"));
  EXPECT_THROW(app.parse({"man", "data", "rye"}), ConfigError);
}

TEST(ManPages, DescribeEveryKeyOfTheConfiguration) {
  const std::string page = man_pages(CommandLine("Do things", "trireme")).at("trireme.yaml.5");
  for (const ResolvedKey& key : run_config_keys()) {
    EXPECT_THAT(page, HasSubstr(".B " + key.key + "\n"));
    EXPECT_GT(key.doc.size(), 3U) << key.key;
    EXPECT_FALSE(key.allowed.empty()) << key.key;
  }
  EXPECT_THAT(page, HasSubstr("Required."));
}

}  // namespace
}  // namespace trireme
