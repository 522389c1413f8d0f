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

// What the benchmark of the noise writes about a node with one core.
AcceptSubject noisy_node(const std::string& name, double lost) {
  nlohmann::json document = bench_json({1000, 1001, 1002});
  document["results"][0]["metrics"] = {{"lost_fraction", lost}};
  AcceptSubject subject{{name}, {}, {}};
  add_result(parse_bench_result(document.dump(), "x"), subject);
  return subject;
}

// A product whose rate is 2000 times the inverse of its time.
AcceptSubject gemm_node(const std::string& name, double time_us) {
  nlohmann::json document = bench_json({time_us});
  document["results"][0]["metrics"] = {{"flops_per_s", 2e9 / time_us}, {"wrong", 0}};
  AcceptSubject subject{{name}, {}, {}};
  add_result(parse_bench_result(document.dump(), "x"), subject);
  return subject;
}

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
    EXPECT_FALSE(verdict.bad());  // either could be the bad one
    EXPECT_FALSE(verdict.good());
    EXPECT_EQ(short_text(verdict), "not judged");
  }
}

TEST(Acceptance, WhatWasNotMeasuredIsNotGood) {
  const auto verdicts = judge({{{"n1"}, {}, {}}, {{"n2"}, {}, {}}, {{"n3"}, {}, {}}}, kDemands);
  EXPECT_FALSE(verdicts[0].good());
  EXPECT_EQ(short_text(verdicts[0]), "not measured");
}

TEST(Acceptance, LostTimeIsJudged) {
  const auto verdicts = judge({noisy_node("n1", 0.01), noisy_node("n2", 0.012),
                               noisy_node("n3", 0.93), noisy_node("n4", 0)},
                              kDemands);
  ASSERT_EQ(verdicts[2].findings.size(), 1U);
  EXPECT_THAT(sentence(verdicts[2], 3),
              HasSubstr("Node n3 reaches 7 % of the typical speed in gemm lost_fraction (m=96 "
                        "precision=fp32): 0.93 of the time, where the median of all is 0.011"));
  EXPECT_TRUE(verdicts[0].good());
  EXPECT_TRUE(verdicts[3].good());
  AcceptProfile::Demands demands = kDemands;
  demands.limits["lost_fraction"] = 0.011;
  const auto limited = judge({noisy_node("n1", 0.01), noisy_node("n2", 0.012)}, demands);
  EXPECT_TRUE(limited[0].good());
  EXPECT_THAT(sentence(limited[1], 1), HasSubstr("0.012 of the time instead of at most 0.011"));
}

TEST(Acceptance, LimitsCanBeRatesAndNeedNotNameEverything) {
  const std::vector<AcceptSubject> nodes = {gemm_node("n1", 2), gemm_node("n2", 4)};
  for (const char* const name : {"gemm flops_per_s", "flops_per_s",
                                 "gemm precision=fp32 flops_per_s", "flops_per_s m=96 gemm"}) {
    AcceptProfile::Demands demands = kDemands;
    demands.limits[name] = 0.6e9;
    EXPECT_EQ(limit_problem(nodes, demands, "node.limits"), "") << name;
    const auto verdicts = judge(nodes, demands);
    EXPECT_TRUE(verdicts[0].good()) << name;
    ASSERT_EQ(verdicts[1].findings.size(), 1U) << name;
    EXPECT_TRUE(verdicts[1].findings[0].limit);
    EXPECT_EQ(verdicts[1].findings[0].agreed->name, name);
  }
}

TEST(Acceptance, TheStrictestLimitCounts) {
  AcceptProfile::Demands demands = kDemands;
  demands.limits = {{"gemm flops_per_s", 0.1e9}, {"flops_per_s", 0.9e9}, {"time_us", 9}};
  demands.limits["gemm time_us"] = 3;
  const auto verdicts = judge({gemm_node("n1", 2), gemm_node("n2", 4)}, demands);
  ASSERT_EQ(verdicts[1].findings.size(), 2U);
  EXPECT_EQ(verdicts[1].findings[0].agreed->value, 0.9e9) << "the worst first";
  EXPECT_EQ(verdicts[1].findings[1].agreed->value, 3);
}

TEST(Acceptance, RatesAreNotComparedBesideTheirTimes) {
  const auto verdicts =
      judge({gemm_node("n1", 2), gemm_node("n2", 2.01), gemm_node("n3", 9)}, kDemands);
  ASSERT_EQ(verdicts[2].findings.size(), 1U);
  EXPECT_EQ(verdicts[2].findings[0].name, "gemm time_us");
  EXPECT_EQ(verdicts[2].figures.size(), 2U) << "but they are evidence";
  const auto lacking = judge({gemm_node("n1", 2), gemm_node("n2", 2), {{"n3"}, {}, {}}}, kDemands);
  EXPECT_THAT(lacking[2].complaints, ElementsAre("gemm time_us could not be measured"));
}

TEST(Acceptance, LimitsThatConcernNothingAreNamedWithWhatThereIs) {
  AcceptProfile::Demands demands = kDemands;
  demands.limits["gemm flopz=1"] = 3;
  const std::vector<AcceptSubject> nodes = {gemm_node("n1", 2)};
  EXPECT_THAT(limit_problem(nodes, demands, "node.limits"),
              AllOf(HasSubstr("node.limits: 'gemm flopz=1=3' concerns nothing that was measured"),
                    HasSubstr("'gemm flops_per_s' (m=96 precision=fp32); 'gemm time_us' (")));
  const AcceptSubject failed{{"n1"}, {}, {"gemm has failed"}};
  EXPECT_EQ(limit_problem({failed}, demands, "node.limits"), "") << "it cannot be known";
  demands.limits = {{"gemm", 3}};
  EXPECT_THAT(limit_problem(nodes, demands, "node.limits"),
              HasSubstr("'gemm=3' concerns figures with different units: 'gemm flops_per_s'"));
  demands.limits = {{" ", 3}};
  EXPECT_THAT(limit_problem(nodes, demands, "node.limits"), HasSubstr("concerns nothing"));
}

TEST(Acceptance, AMissedLimitIsNamedWithTheMeasurement) {
  AcceptProfile::Demands demands = kDemands;
  demands.limits = {{"gemm time_us", 1}};
  const auto verdicts = judge({gemm_node("n1", 2), gemm_node("n2", 4)}, demands);
  EXPECT_EQ(sentence(verdicts[0], 3),
            "Node n1 misses the agreed limit gemm time_us=1 in gemm time_us (m=96 "
            "precision=fp32): 2 us instead of at most 1 us (median of 3 rounds; the median of all "
            "is 3 us).");
  EXPECT_EQ(reason(verdicts[0]),
            "trireme accept: gemm time_us (m=96 precision=fp32) is 2 us, limit 1 us");
  EXPECT_EQ(short_text(verdicts[0]), "BAD: gemm time_us is 2 us, limit 1 us");
  demands.limits = {{"flops_per_s", 1e9}};
  EXPECT_THAT(sentence(judge({gemm_node("n1", 4)}, demands)[0], 1),
              HasSubstr(": 500 MFLOP/s instead of at least 1.00 GFLOP/s (median of 1 round; "));
}

TEST(Acceptance, ABusyMachineIsNoted) {
  AcceptSubject subject = gemm_node("n1", 2);
  subject.waited = {{"gemm --size 96", 0.92}, {"health", 0.05}};
  EXPECT_THAT(judge({subject}, kDemands)[0].notes,
              ElementsAre("gemm --size 96 waited for a core 92 % of its time: other programs kept "
                          "the cores busy"));
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
  EXPECT_EQ(subject.measured.at("gemm time_us").unit, "us");
  add_health(R"({"complaints": [], "rates": {"memory": {"median": 6, "unit": ""}},
                 "waited_fraction": 0.5})",
             subject);
  EXPECT_EQ(subject.waited.at("health"), 0.5);
  nlohmann::json nothing = bench_json({});
  EXPECT_THROW(add_result(parse_bench_result(nothing.dump(), "x"), subject), DataError);
  EXPECT_THROW(add_result(parse_bench_result(bench_json({0, 0}).dump(), "x"), subject), DataError);
  nothing["results"] = nlohmann::json::array();
  EXPECT_THROW(add_result(parse_bench_result(nothing.dump(), "x"), subject), DataError);
  for (const char* bad :
       {"", "{}", "[1]", R"({"complaints": [], "rates": {}})",
        R"({"complaints": [1], "rates": {}})", R"({"complaints": [], "rates": 7})",
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
  for (const char* bad :
       {"nodez: n1\n", "rounds: 0\n", "node: {limits: [x]}\n", "node: {limits: [x=nan]}\n",
        "node: {limits: [x=-1]}\n", "link: {at_least: 200}\n", "link: {measures: ['--help']}\n",
        "[1]\n", "node: {start: [env]}\n", "link: {start: [run, '{a}']}\n",
        "node: {measures: []}\n", "link: {measures: [], limits: [p2p_bw=1]}\n", "seconds: 0\n",
        "seconds: 1e10\n", "seconds: 1e308\n"}) {
    EXPECT_THROW(load(bad), ConfigError) << bad;
  }
  EXPECT_THAT(message_of<ConfigError>([&] { load("node: {limits: [gemm f=1e15, gemm f=1e6]}\n"); }),
              HasSubstr("'gemm f' has two limits, 1e+15 and 1e+06: keep one"));
  EXPECT_EQ(load("seconds: 31536000\n").seconds, 31'536'000);
  EXPECT_EQ(load("node: {limits: [gemm f=1e6, gemm f=1e6]}\n").node.limits.size(), 1U);
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
