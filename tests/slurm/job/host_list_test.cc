#include "slurm/job/host_list.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(HostList, Plain) {
  EXPECT_THAT(expand_host_list("login"), ElementsAre("login"));
  EXPECT_THAT(expand_host_list("a,b.example.org,c-1_x"),
              ElementsAre("a", "b.example.org", "c-1_x"));
}

// The expected values are those of `scontrol show hostnames`.
TEST(HostList, Ranges) {
  EXPECT_THAT(expand_host_list("n[1-4,7]"), ElementsAre("n1", "n2", "n3", "n4", "n7"));
  EXPECT_THAT(expand_host_list("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expand_host_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expand_host_list("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(expand_host_list("a[1]x,b[2-3]-ib0"), ElementsAre("a1x", "b2-ib0", "b3-ib0"));
}

TEST(HostList, SeveralBrackets) {
  EXPECT_THAT(expand_host_list("r[0-1]n[01,03]"), ElementsAre("r0n01", "r0n03", "r1n01", "r1n03"));
}

TEST(HostList, ManyHosts) { EXPECT_THAT(expand_host_list("n[0-99999]"), SizeIs(100000)); }

TEST(HostList, WhatIsNone) {
  for (const char* text : {"",
                           ",",
                           "a,",
                           ",a",
                           "a,,b",
                           "n[",
                           "n]",
                           "n[]",
                           "n[1",
                           "n[1-]",
                           "n[-1]",
                           "n[1-2-3]",
                           "n[1,]",
                           "n[1,,2]",
                           "n[2-1]",
                           "n[a-b]",
                           "n[1]]",
                           "n[[1]]",
                           "a b",
                           "a\nb",
                           "$(reboot)",
                           "a;b",
                           "a/b",
                           "n[1234567890123]",
                           "n[0-99999999]",
                           "n[1-1024]x[1-1024]y[1-1024]",
                           "n[1 -2]",
                           "é",
                           "a[1][1][1][1][1][1][1][1][1]"}) {
    EXPECT_THROW(expand_host_list(text), ConfigError) << text;
  }
  EXPECT_THROW(expand_host_list(std::string_view("a\0b", 3)), ConfigError);
  EXPECT_THROW(expand_host_list(std::string(300, 'a')), ConfigError);
  EXPECT_THROW(expand_host_list(std::string(200, 'a') + "[1-2]" + std::string(60, 'b')),
               ConfigError);
  EXPECT_THROW(expand_host_list(std::string(2 << 20, ',')), ConfigError);
}

TEST(HostList, TheMessageShowsWhere) {
  const auto text = message_of<ConfigError>([] { expand_host_list("n[1-3],m[3-1]\x1b[31m"); });
  EXPECT_THAT(text, HasSubstr("byte 12"));
  EXPECT_THAT(text, HasSubstr("the range 3-1 is descending"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

// For any text, the result is either plain host names or a ConfigError.
TEST(HostList, AnyText) {
  std::mt19937 random(20240101);
  const std::string alphabet = "n[]-,0123456789a.\n\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t length = random() % 14; length > 0; --length) {
      text += alphabet[random() % alphabet.size()];
    }
    try {
      for (const std::string& host : expand_host_list(text)) {
        ASSERT_FALSE(host.empty()) << text;
        ASSERT_EQ(host.find_first_of("[],\n\xff"), std::string::npos) << text;
      }
    } catch (const ConfigError&) {
    }
  }
}

}  // namespace
}  // namespace trireme
