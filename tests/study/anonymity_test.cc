#include "src/study/anonymity.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Anonymity, ReplacesWholeNames) {
  Anonymity anonymity;
  anonymity.add_host("n1.cluster.site.org");
  anonymity.add_host("n12");
  anonymity.add_user("jane");
  EXPECT_EQ(anonymity.apply("n1 and n12, not n123; n1.cluster.site.org:22 /users/jane/n1-r01"),
            "host-1 and host-2, not n123; host-1.domain-1:22 /users/user-1/host-1-r01");
  EXPECT_EQ(anonymity.apply("start on n[1-3,12]"), "start on hosts[1-3,12]");
}

TEST(Anonymity, LearnsFromTexts) {
  Anonymity anonymity;
  anonymity.learn(R"({"time":1,"host":"gpu07","nodes":["a1", "a2"],"user":"joe"})"
                  "\nrun.dir: /users/mary/runs\n"
                  R"("host": {
    "name": "login1", "kernel": "6.1"})");
  EXPECT_EQ(anonymity.names(), 6U);
  EXPECT_EQ(anonymity.apply("gpu07 a1 a2 joe mary login1 kernel").find("gpu"), std::string::npos);
  EXPECT_EQ(anonymity.apply("joe mary"), "user-1 user-2");
}

TEST(Anonymity, ReplacesAddresses) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("10.1.2.3:4000, 127.0.0.1, fe80::1:2:3 02:42:ac:11:00:02 a.b@c.org."),
            "address-1:4000, 127.0.0.1, address-2 address-3 mail-1.");
  EXPECT_EQ(anonymity.apply("at 12:30:05 version 1.2.3 0.1 1.2.3.4.5"),
            "at 12:30:05 version 1.2.3 0.1 1.2.3.4.5");
}

TEST(Anonymity, HostileTexts) {
  Anonymity anonymity;
  for (const char* text : {"", "\"host\":", "\"host\":\"", "\"nodes\":[\"a\",", "\"host\": {", "@",
                           ":::", "....", "\"host\":\"a b\"", "\"host\":\"\x1b[2J\"", "/home/"}) {
    anonymity.learn(text);
    (void)anonymity.apply(text);
  }
  EXPECT_EQ(anonymity.apply(std::string(5000, 'a')), std::string(5000, 'a'));
}

}  // namespace
}  // namespace trireme
