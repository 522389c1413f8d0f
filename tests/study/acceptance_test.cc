#include "src/study/acceptance.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/study/result_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AcceptSubject node(const std::string& name, double rate, const char* measure = "products fp32") {
  AcceptSubject subject{{name}, {}, {}};
  subject.measured[measure] = {Better::higher, "GFLOP/s", {rate * 0.99, rate, rate * 1.01}};
  return subject;
}

AcceptSubject link(const std::string& a, const std::string& b, double time) {
  AcceptSubject subject{{a, b}, {}, {}};
  subject.measured["p2p_bw time_us"] = {Better::lower, "", {time}};
  return subject;
}

const AcceptProfile::Demands kDemands{{}, {}, 80, 3, {}};

TEST(Acceptance, FindsTheSlowNode) {
  const auto verdicts =
      judge({node("n1", 100), node("n2", 102), node("n3", 25), node("n4", 99)}, kDemands);
  EXPECT_TRUE(verdicts[0].good());
  EXPECT_TRUE(verdicts[1].good());
  EXPECT_TRUE(verdicts[3].good());
  ASSERT_EQ(verdicts[2].findings.size(), 1U);
  EXPECT_NEAR(verdicts[2].findings[0].percent, 25, 1);
  EXPECT_THAT(sentence(verdicts[2], 3),
              HasSubstr("Node n3 reaches 25 % of the typical speed in products fp32: 25 GFLOP/s"));
  EXPECT_THAT(reason(verdicts[2]), HasSubstr("products fp32 at 25 %"));
}

TEST(Acceptance, ScatterAndFewNodesAreNoFindings) {
  for (const auto& verdict :
       judge({node("n1", 100), node("n2", 60), node("n3", 150), node("n4", 75)}, kDemands)) {
    EXPECT_TRUE(verdict.good());
  }
  for (const auto& verdict : judge({node("n1", 100), node("n2", 10)}, kDemands)) {
    EXPECT_TRUE(verdict.good());  // either could be the bad one
  }
}

TEST(Acceptance, LimitsHoldForAnyNumberOfNodes) {
  AcceptProfile::Demands demands = kDemands;
  demands.limits["products fp32"] = 50;
  const auto verdicts = judge({node("n1", 100), node("n2", 10)}, demands);
  EXPECT_TRUE(verdicts[0].good());
  ASSERT_EQ(verdicts[1].findings.size(), 1U);
  EXPECT_TRUE(verdicts[1].findings[0].limit);
}

TEST(Acceptance, WhatIsMissingIsAComplaint) {
  const auto verdicts =
      judge({node("n1", 100), node("n2", 100), node("n3", 100, "memory")}, kDemands);
  EXPECT_THAT(verdicts[2].complaints, ElementsAre("products fp32 could not be measured"));
  EXPECT_FALSE(verdicts[0].good());
}

TEST(Acceptance, PartnersTellWhichEndIsAtFault) {
  const std::vector<std::string> names = {"n1", "n2", "n3", "n4"};
  std::vector<AcceptSubject> links;
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = a + 1; b < names.size(); ++b) {
      const bool slow = names[a] == "n2" || names[b] == "n2";
      links.push_back(link(names[a], names[b], slow ? 900 : 100 + double(a + b)));
    }
  }
  // Half of the links are slow, so that their scatter hides them; the limit does not.
  AcceptProfile::Demands demands = kDemands;
  demands.limits["p2p_bw time_us"] = 200;
  const auto verdicts = judge(links, demands);
  const auto tests = partner_tests(verdicts, {});
  std::vector<AcceptVerdict> tested;
  for (const auto& [suspect, partner] : tests) {
    EXPECT_NE(partner, "n2");
    AcceptVerdict verdict{{suspect, partner}, {}, {}};
    if (suspect == "n2") {
      verdict.findings.push_back({});
    }
    tested.push_back(verdict);
  }
  EXPECT_THAT(guilty_ends(tests, tested), ElementsAre("n2"));
}

TEST(Acceptance, ALinkCanBeBadAlone) {
  std::vector<AcceptVerdict> links = {{{"a", "b"}, {}, {"failed"}}, {{"a", "c"}, {}, {}},
                                      {{"a", "d"}, {}, {}},         {{"b", "c"}, {}, {}},
                                      {{"b", "d"}, {}, {}},         {{"c", "d"}, {}, {}}};
  const auto tests = partner_tests(links, {"d"});
  EXPECT_THAT(tests, ElementsAre(std::pair("a", "c"), std::pair("b", "c")));
  EXPECT_TRUE(guilty_ends(tests, {{{"a", "c"}, {}, {}}, {{"b", "c"}, {}, {}}}).empty());
}

TEST(Acceptance, ReadsHealthAndBenchmarks) {
  AcceptSubject subject{{"n1"}, {}, {}};
  add_health(R"({"complaints": ["link down"], "rates": {"memory": {"median": 5, "unit": "MB/s"}}})",
             subject);
  add_health(R"({"complaints": ["link down"], "rates": {"memory": {"median": 6, "unit": "MB/s"}}})",
             subject);
  EXPECT_THAT(subject.measured.at("memory").values, ElementsAre(5, 6));
  EXPECT_THAT(subject.complaints, ElementsAre("link down"));
  add_result(parse_bench_result(bench_json({3, 1, 2}).dump(), "x"), subject);
  EXPECT_THAT(subject.measured.at("gemm time_us").values, ElementsAre(2));
  for (const char* bad :
       {"", "{}", "[1]", R"({"complaints": [1], "rates": {}})", R"({"complaints": [], "rates": 7})",
        R"({"complaints": [], "rates": {"m": {"median": 0, "unit": ""}}})",
        R"({"complaints": [], "rates": {"m": {"median": null, "unit": ""}}})",
        R"({"complaints": [], "rates": {"m": {"median": 1}}})"}) {
    EXPECT_THROW(add_health(bad, subject), DataError) << bad;
  }
}

TEST(AcceptProfile, TheExamplesAreValid) {
  const AcceptProfile profile =
      load_accept_profile(std::filesystem::path(TRIREME_SOURCE_DIR) / "configs/accept/slurm.yaml");
  EXPECT_EQ(profile.node.measures.front(), "health");
  EXPECT_EQ(profile.burn_in_minutes, 60);
  const AcceptProfile shared = load_accept_profile(std::filesystem::path(TRIREME_SOURCE_DIR) /
                                                   "configs/accept/shared-cores.yaml");
  EXPECT_EQ(shared.at_once, 1);
}

TEST(AcceptProfile, ReadsAndRefuses) {
  const TempFolder folder;
  const auto load = [&](const std::string& text) {
    std::ofstream(folder.path() / "accept.yaml") << text;
    return load_accept_profile(folder.path() / "accept.yaml");
  };
  const AcceptProfile profile = load(
      "nodes: n[1-4]\nrounds: 2\nnode:\n  limits: [products fp32=100, a=b=2.5]\n"
      "link:\n  start: [run, '{a}-{b}']\n");
  EXPECT_EQ(profile.node.limits.at("products fp32"), 100);
  EXPECT_EQ(profile.node.limits.at("a=b"), 2.5);
  EXPECT_THAT(filled_in(profile.link.start, {{"a", "x"}, {"b", "{a}"}}),
              ElementsAre("run", "x-{a}"));
  EXPECT_THAT(filled_in(profile.node.start, {{"node", "n7"}}).back(), "--nodelist=n7");
  for (const char* bad : {"nodez: n1\n", "rounds: 0\n", "node: {limits: [x]}\n",
                          "node: {limits: [x=nan]}\n", "node: {limits: [x=-1]}\n",
                          "link: {at_least: 200}\n", "link: {measures: ['--help']}\n", "[1]\n"}) {
    EXPECT_THROW(load(bad), ConfigError) << bad;
  }
}

TEST(Acceptance, TooManyBadNodesHaveASharedCause) {
  EXPECT_EQ(shared_cause(0, 4, 50), "");
  EXPECT_EQ(shared_cause(2, 4, 50), "");
  EXPECT_THAT(shared_cause(3, 4, 50),
              AllOf(HasSubstr("3 of 4 nodes would be drained, more than the 50 %"),
                    HasSubstr("drain_at_most"), HasSubstr("--drain-all")));
  EXPECT_THAT(shared_cause(1, 1, 50), HasSubstr("1 of 1 node would"));
  EXPECT_EQ(shared_cause(4, 4, 100), "");
  EXPECT_NE(shared_cause(1, 100, 0), "");
  EXPECT_EQ(shared_cause(0, 100, 0), "");
}

}  // namespace
}  // namespace trireme
