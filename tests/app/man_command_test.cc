#include "src/app/site/man_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ManPages, SayWhatHelpSays) {
  CommandLine app("does things", "trireme");
  CommandLine& data = app.add_command("data", "Look after data");
  CommandLine& pack = data.add_command("pack", "Pack text");
  std::string out = "here";
  std::vector<std::string> inputs;
  pack.add_option("-o,--out", out, "where it goes").show_default();
  pack.add_option("INPUT", inputs, "files").required();
  pack.footer("Example:\n.dots and 'quotes' \\ back\\slashes stay\n");
  const auto pages = man_pages(app);
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_THAT(pages.at("trireme.1"), HasSubstr(".BR trireme\\-data (1)\nLook after data\n"));
  const std::string page = pages.at("trireme-data.1");
  for (const char* words :
       {".TH trireme\\-data 1", ".SS trireme data pack\n", "INPUT ...\n", "where it goes [here]",
        "\\&.dots and \\(aqquotes\\(aq \\e back\\eslashes", ".SH EXIT STATUS",
        "saved, please requeue"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
}

}  // namespace
}  // namespace trireme
