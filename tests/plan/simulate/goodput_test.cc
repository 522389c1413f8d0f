#include "src/plan/simulate/goodput.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/plan/simulate/goodput_report.h"
#include "src/plan/simulate/published_rates.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr int kFewDraws = 24;

// A job with all kinds of trouble, in which every part of the model matters.
JobModel troubled_job() {
  JobModel model = load_job_model({}, {"nodes=256", "spares=3", "group_nodes=8", "days=20"});
  model.rates = {"none", 20, 10, 40, 5, 10, 12, 0.02, 8};
  model.queue.wait_hours = 3;
  return model;
}

Goodput goodput_of(const JobModel& model, std::uint64_t seed = 1, int draws = kFewDraws) {
  return summarize(simulate_draws(model, seed, draws, 1));
}

double mean_with(const std::function<void(JobModel&)>& change) {
  JobModel model = troubled_job();
  change(model);
  return goodput_of(model).mean;
}

TEST(Goodput, DoesNotDependOnThreads) {
  const JobModel model = troubled_job();
  const Goodput one = summarize(simulate_draws(model, 5, 9, 1));
  const Goodput three = summarize(simulate_draws(model, 5, 9, 3));
  EXPECT_EQ(one.sorted, three.sorted);
  EXPECT_NE(one.sorted, goodput_of(model, 6, 9).sorted);
}

TEST(Goodput, QuantilesAreThoseOfTheDraws) {
  Goodput goodput;
  goodput.sorted = {0.1, 0.2, 0.4};
  EXPECT_DOUBLE_EQ(goodput.quantile(0), 0.1);
  EXPECT_DOUBLE_EQ(goodput.quantile(0.5), 0.2);
  EXPECT_DOUBLE_EQ(goodput.quantile(0.75), 0.3);
  EXPECT_DOUBLE_EQ(goodput.quantile(1), 0.4);
}

struct Better {
  const char* name;
  void (*change)(JobModel&);
};

// Everything that should help does, on average over the same faults.
TEST(Goodput, WhatHelpsHelps) {
  const double base = goodput_of(troubled_job()).mean;
  ASSERT_GT(base, 0.3);
  ASSERT_LT(base, 0.95);
  constexpr std::array<Better, 20> kBetter = {{
      {"spares", [](JobModel& m) { m.spares = 20; }},
      {"repair", [](JobModel& m) { m.times.repair_hours /= 4; }},
      {"queue", [](JobModel& m) { m.queue.wait_hours /= 4; }},
      {"fewer dead ranks", [](JobModel& m) { m.rates.process /= 4; }},
      {"fewer hangs", [](JobModel& m) { m.rates.hang /= 4; }},
      {"fewer lost nodes", [](JobModel& m) { m.rates.node /= 4; }},
      {"fewer lost groups", [](JobModel& m) { m.rates.group /= 4; }},
      {"fewer losses of the site", [](JobModel& m) { m.rates.site /= 4; }},
      {"fewer stragglers", [](JobModel& m) { m.rates.straggler /= 4; }},
      {"shorter losses of the site", [](JobModel& m) { m.times.site_hours /= 4; }},
      {"detect", [](JobModel& m) { m.times.detect = {0, 5, 1, 1, 1, 0, 0}; }},
      {"exclude", [](JobModel& m) { m.times.exclude = 0; }},
      {"relaunch", [](JobModel& m) { m.times.relaunch /= 4; }},
      {"start", [](JobModel& m) { m.times.start /= 4; }},
      {"load from memory", [](JobModel& m) { m.times.load_memory /= 4; }},
      {"load from disk", [](JobModel& m) { m.times.load_disk /= 10; }},
      {"stall", [](JobModel& m) { m.checkpoint.stall /= 4; }},
      {"milder stragglers", [](JobModel& m) { m.straggler.slowdown = 1.05; }},
      {"shorter stragglers", [](JobModel& m) { m.straggler.hours /= 4; }},
      {"a smaller job", [](JobModel& m) { m.nodes = 64; }},
  }};
  for (const Better& better : kBetter) {
    EXPECT_GT(mean_with(better.change), base) << better.name;
  }
}

TEST(Goodput, WhatHurtsHurts) {
  const double base = goodput_of(troubled_job()).mean;
  constexpr std::array<Better, 5> kWorse = {{
      {"no partner", [](JobModel& m) { m.checkpoint.partner = false; }},
      {"nothing in memory",
       [](JobModel& m) {
         m.checkpoint.memory_every = {0, ""};
       }},
      {"nothing at all",
       [](JobModel& m) {
         m.checkpoint.every = m.checkpoint.memory_every = {0, ""};
       }},
      {"maintenance",
       [](JobModel& m) {
         m.maintenance = {2, 4};
       }},
      {"time limits", [](JobModel& m) { m.queue.limit_hours = 12; }},
  }};
  for (const Better& worse : kWorse) {
    EXPECT_LT(mean_with(worse.change), base) << worse.name;
  }
}

// A lost node of a job without spares sends it into the queue: of the mean time M between such
// losses and the wait, M is left.
TEST(Goodput, WithAWaitInTheQueueIsThatOfTheClosedForm) {
  JobModel model = load_job_model(
      {}, {"rates.source=none", "rates.node=2.9", "times.spread=0", "times.repair_hours=10000"});
  const double hours = model.mean_seconds_between_stops() / 3600;
  model.queue.wait_hours = 0;
  const double base = goodput_of(model).mean;
  ASSERT_GT(base, 0.85);
  for (const double wait : {0.1, 1.0, 5.0, 10.0, 24.0, 100.0}) {
    model.queue.wait_hours = wait;
    model.days = 30 + 3 * wait;
    EXPECT_NEAR(goodput_of(model).mean, base * hours / (hours + wait), 0.02) << wait;
  }
}

TEST(Goodput, FallsAsTheWaitInTheQueueGrows) {
  for (const char* spares : {"spares=0", "spares=8"}) {
    for (const char* limit : {"queue.limit_hours=0", "queue.limit_hours=24"}) {
      JobModel model = load_job_model({}, {spares, limit});
      double before = 1;
      for (const double wait : {0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 24.0, 100.0}) {
        model.queue.wait_hours = wait;
        const double now = goodput_of(model).mean;
        EXPECT_LT(now, before + 0.005) << spares << ", " << limit << ", " << wait << " h";
        before = now;
      }
    }
  }
}

// Young's and Daly's interval is close to the best.
TEST(Goodput, TheAutomaticIntervalIsNearTheBest) {
  const JobModel base = load_job_model(
      {}, {"checkpoint.memory_every=0", "checkpoint.stall=60", "days=60", "times.spread=0"});
  const double automatic = goodput_of(base).mean;
  for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
    JobModel model = base;
    model.checkpoint.every = {
        static_cast<std::int64_t>(factor * static_cast<double>(base.disk_interval())), ""};
    EXPECT_LT(goodput_of(model).mean, automatic + 0.001) << factor;
  }
}

// Llama 3 405B: more than 90 % effective training time on 2048 nodes (arXiv:2407.21783, 3.3.4).
TEST(Goodput, OfLlama3IsAsPublished) {
  const JobModel model = load_job_model({}, {"days=54", "spares=16"});
  const Goodput goodput = goodput_of(model, 1, 10);
  EXPECT_NEAR(std::accumulate(goodput.faults.begin(), goodput.faults.end(), 0.0), 419, 30);
  EXPECT_GT(goodput.quantile(0), 0.9);
  EXPECT_LT(goodput.quantile(1), 0.995);
}

TEST(Measures, AreSortedByTheirGain) {
  JobModel model = troubled_job();
  const std::vector<SimulatedRun> runs = simulate_draws(model, 1, 12, 1);
  const std::vector<Measure> measures = compare_measures(model, runs, 1, 2);
  ASSERT_GT(measures.size(), 8U);
  const double base = summarize(runs).mean;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    EXPECT_NEAR(measures[i].goodput - base, measures[i].gain, 1e-9);
    EXPECT_GE(measures[i].error, 0);
    EXPECT_LE(measures[i].gain, i == 0 ? 1 : measures[i - 1].gain);
  }
  // With 3 spares for 256 troubled nodes, waiting for nodes is what costs most.
  EXPECT_THAT(measures.front().name, testing::AnyOf(HasSubstr("repair"), HasSubstr("spare")));
}

TEST(Measures, OfferWhatIsMissing) {
  JobModel model = troubled_job();
  model.checkpoint.memory_every = {0, ""};
  const auto names = [&] {
    std::string all;
    for (const Measure& m : compare_measures(model, simulate_draws(model, 1, 2, 1), 1, 1)) {
      all += m.name + "\n";
    }
    return all;
  };
  EXPECT_THAT(names(), HasSubstr("saves in memory as well"));
  model.checkpoint = {};
  model.checkpoint.partner = false;
  EXPECT_THAT(names(), HasSubstr("copies of saves in the memory of a partner"));
  model.rates.lemon_share = 0;
  EXPECT_THAT(names(), testing::Not(HasSubstr("fails more often")));
}

// Without spares, most recoveries come from disk, for which `auto` saves too seldom.
TEST(Measures, OfferMoreSavesOnDiskWhereRecoveriesComeFromIt) {
  const auto measures = [](const JobModel& model) {
    return compare_measures(model, simulate_draws(model, 1, 12, 1), 1, 1);
  };
  const auto is_offer = [](const Measure& m) { return m.name.find("stall alone") < m.name.size(); };
  const std::vector<Measure> without = measures(load_job_model({}, {}));
  const auto offer = std::find_if(without.begin(), without.end(), is_offer);
  ASSERT_NE(offer, without.end());
  EXPECT_GT(offer->gain, 0.02);
  EXPECT_GT(offer->gain, 5 * offer->error);
  const std::vector<Measure> spared = measures(load_job_model({}, {"spares=40"}));
  EXPECT_TRUE(std::none_of(spared.begin(), spared.end(), is_offer));
}

TEST(GoodputReport, PrintsTheSameAsTextJsonAndFigure) {
  GoodputReport report;
  report.model = troubled_job();
  report.seed = 3;
  const std::vector<SimulatedRun> runs = simulate_draws(report.model, 3, 10, 1);
  report.goodput = summarize(runs);
  report.measures = compare_measures(report.model, runs, 3, 1);
  const nlohmann::json json = nlohmann::json::parse(to_json(report).dump());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["nodes"], 256);
  EXPECT_EQ(json["draws"], 10);
  EXPECT_EQ(json["quantiles"].size(), 7U);
  double shares = 0;
  for (const auto& [cause, share] : json["shares"].items()) {
    shares += share.get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("256 nodes, 3 spares, 20 days, a step takes 10 s; 10 draws, seed 3"));
  EXPECT_THAT(text, HasSubstr(fmt::format("goodput {:.2f} % on average",
                                          100 * json["goodput"].get<double>())));
  EXPECT_THAT(text, HasSubstr(json["measures"][0]["name"].get<std::string>()));
  EXPECT_THAT(to_svg(report), HasSubstr("goodput, %"));
}

GoodputReport report_of(const std::vector<std::string>& keys, int draws) {
  GoodputReport report;
  report.model = load_job_model({}, keys);
  report.goodput = summarize(simulate_draws(report.model, 1, draws, 1));
  return report;
}

TEST(GoodputReport, SaysWhatItRestsOn) {
  GoodputReport report = report_of({"step_seconds=1", "checkpoint.every=9", "rates.node=3"}, 3);
  report.notes = {"from somewhere"};
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("failure rates: llama3, changed; something stops the job every"));
  EXPECT_THAT(text, HasSubstr("\nfrom somewhere\nwarning: saves on disk every 9.0s"));
  EXPECT_EQ(to_json(report)["warnings"].size(), 1U);
  EXPECT_EQ(to_json(report)["notes"][0], "from somewhere");
  EXPECT_THAT(text, testing::Not(HasSubstr("auto on disk")));
  EXPECT_THAT(to_text(report_of({"checkpoint.memory_every=0"}, 1)),
              HasSubstr("if a save costs 2.0s (checkpoint.stall)"));
  const std::string both = to_text(report_of({}, 1));
  EXPECT_THAT(both, HasSubstr("if a save costs 3m00s (checkpoint.disk_seconds"));
  EXPECT_THAT(both, HasSubstr("failure rates: llama3; something"));
}

TEST(GoodputReport, NeedsNoSavesWithoutFailures) {
  const std::string text = to_text(report_of({"rates.source=none"}, 2));
  EXPECT_THAT(text, HasSubstr("nothing stops the job\nsaves in memory not needed, on disk not "
                              "needed"));
  EXPECT_THAT(text, testing::Not(HasSubstr("1099511627776")));
}

TEST(GoodputReport, PrintsOneValueForOneDraw) {
  EXPECT_THAT(to_text(report_of({}, 1)), testing::Not(HasSubstr("median")));
  const std::string text = to_text(report_of({}, 5));
  for (const char* name : {"minimum", "10 % have less than", "median", "90 % have", "maximum"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST(GoodputReport, AccountsForAllLaunches) {
  GoodputReport report = report_of({}, 1);
  report.goodput.launches = 236.4;
  report.goodput.from_memory = 233;
  report.goodput.from_disk = 0.7;
  report.goodput.from_nothing = 1;
  EXPECT_THAT(to_text(report),
              HasSubstr("236.4 launches: 233.0 from memory, 0.7 from disk, 1.0 from the beginning, "
                        "1.7 ended by the next fault before they trained"));
}

}  // namespace
}  // namespace trireme
