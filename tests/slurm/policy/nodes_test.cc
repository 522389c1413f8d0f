#include "slurm/policy/nodes.h"

#include <set>

#include <gtest/gtest.h>

#include "slurm/policy/site_list.h"
#include "src/base/error.h"

namespace trireme {
namespace {

TEST(HostFile, ReadsNamesSlotsAndGroups) {
  const auto nodes =
      parse_host_file("# mine\n n1 slots=4 group=rack1\n\nn2.site\tslots=2 # x\nn3\n", "hosts");
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_EQ(nodes[0].slots, 4);
  EXPECT_EQ(nodes[0].group, "rack1");
  EXPECT_EQ(nodes[1].slots, 2);
  EXPECT_EQ(nodes[2].slots, 0);
}

// Names become part of command lines, so they must not be options or several words.
TEST(HostFile, HostileLinesAreRefusedByNumber) {
  for (const char* bad :
       {"n1\nn1\n", "-oProxyCommand=x\n", "n1;reboot\n", "$(x)\n", "n1 slots=0\n", "n1 slots=-1\n",
        "n1 slots=99999999999\n", "n1 slots=2x\n", "n1 cores=2\n", "n1 group=\n", "n1 group=a,b\n",
        "", "# nothing\n", "n\x01\n", "n1 2\n", "4711\n"}) {
    EXPECT_THROW((void)parse_host_file(bad, "hosts"), ConfigError) << bad;
  }
  try {
    (void)parse_host_file("n1\nn2 what\n", "hosts.txt");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("hosts.txt:2"), std::string::npos);
  }
  try {  // a zero byte would end the message
    (void)parse_host_file(std::string_view("a\0b slots=1\n", 12), "hosts");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "hosts:1: the line does not begin with the name of a host");
  }
  EXPECT_FALSE(is_host_name(std::string(300, 'a')));
}

TEST(ChooseCount, TakesWhatFitsAndNeverLessThanAllowed) {
  const auto all = [](int) { return true; };
  const auto powers = [](int n) { return (n & (n - 1)) == 0; };
  EXPECT_EQ(choose_count(5, 4, 4, all), 4);
  EXPECT_EQ(choose_count(3, 4, 4, all), 0);
  EXPECT_EQ(choose_count(3, 4, 1, powers), 2);
  EXPECT_EQ(choose_count(3, 4, 3, powers), 0);
  EXPECT_EQ(choose_count(0, 4, 1, all), 0);
}

TEST(Partners, AreOthersAndEachKeepsOne) {
  EXPECT_EQ(partners_of({{.name = "a"}}), std::vector<int>{-1});
  const std::vector<NodeSpec> nodes = {{.name = "a", .group = "1"},
                                       {.name = "b", .group = "1"},
                                       {.name = "c", .group = "2"},
                                       {.name = "d", .group = "2"}};
  const std::vector<int> partners = partners_of(nodes);
  std::set<int> used;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_NE(partners[i], static_cast<int>(i));
    EXPECT_NE(nodes[static_cast<std::size_t>(partners[i])].group, nodes[i].group);
    used.insert(partners[i]);
  }
  EXPECT_EQ(used.size(), nodes.size());
}

TEST(SiteList, KeepsWhatIsRecentAndLeavesTheRest) {
  constexpr std::int64_t kNow = 2'000'000'000;
  constexpr std::int64_t kDay = 86400;
  const std::string text = site_list_line("n1", kNow - kDay, "lost\nits\tpower") +
                           site_list_line("n2", kNow - 40 * kDay, "long ago") +
                           "# a comment\nn3\nn4\tx\twhy\n-x\t1999999999\twhy\n" +
                           site_list_line("n5", kNow + 10 * kDay, "from the future");
  const auto nodes = parse_site_list(text, kNow);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes.at("n1"), "lost its power");
}

}  // namespace
}  // namespace trireme
