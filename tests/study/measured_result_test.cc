#include "src/study/measured_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/study/run_result.h"
#include "tests/study/result_text.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { (void)parse_bench_result(text, "bad.json"); });
}

TEST(MeasuredResult, ReadsRowsAndSamples) {
  auto document = bench_json({1, 2, 3});
  document["results"][0]["samples"]["time_us"]["values"][1] = nullptr;
  document["results"][0]["samples"]["ceiling_flops_per_s"] = {{"values", {9}}};
  const MeasuredResult result = parse_bench_result(document.dump(), "a.json");
  EXPECT_EQ(result.command, "gemm");
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].key(), "gemm\nm=96\nprecision=fp32");
  ASSERT_EQ(result.rows[0].samples.size(), 2U);
  EXPECT_TRUE(result.rows[0].samples[0].reference);
  EXPECT_THAT(result.rows[0].samples[1].values, ElementsAre(1, 3));
  EXPECT_EQ(result.rows[0].samples[1].missing, 1);
}

TEST(MeasuredResult, RefusesHostileDocuments) {
  const std::string good = bench_json({1, 2, 3}).dump();
  for (std::size_t length = 0; length < good.size(); length += 7) {  // half-written
    EXPECT_THAT(refusal(good.substr(0, length)), HasSubstr("bad.json: "));
  }
  EXPECT_THAT(refusal("[]"), HasSubstr("not a document"));
  EXPECT_THAT(refusal(R"({"schema": NaN, "results": []})"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(R"({"schema": 2, "schema": 2, "results": []})"), HasSubstr("twice"));
  EXPECT_THAT(refusal(R"({"schema": 3, "results": []})"), HasSubstr("version 3"));
  EXPECT_THAT(refusal(R"({"schema": "2", "results": []})"), HasSubstr("not a whole number"));
  for (const char* huge : {"1e999", "-1e999"}) {
    EXPECT_THAT(refusal(std::string(R"({"schema": 2, "results": [)") + huge + "]}"),
                HasSubstr("not JSON"));
  }
  for (const char* key : {"command", "host", "ranks", "program", "clock", "time", "environment"}) {
    auto document = bench_json({1});
    document[key] = true;
    EXPECT_THAT(refusal(document.dump()), HasSubstr("bad.json: ")) << key;
    document.erase(key);
    EXPECT_THAT(refusal(document.dump()), HasSubstr(key)) << key;
  }
  auto document = bench_json({1});
  document["results"][0]["samples"]["time_us"]["values"][0] = "fast";
  EXPECT_THAT(refusal(document.dump()), HasSubstr("neither a number nor null"));
}

TEST(MeasuredResult, GpusOfOneKindAreTheSameConditions) {
  auto document = bench_json({1});
  document["command"] = "train";
  EXPECT_EQ(parse_bench_result(document.dump(), "old.json").gpus, std::nullopt);
  document["host"]["gpus"] = {{{"name", "NVIDIA H100"}, {"uuid", "GPU-1"}}};
  const MeasuredResult result = parse_bench_result(document.dump(), "a.json");
  EXPECT_EQ(result.gpus, "NVIDIA H100");
  document["host"]["gpus"][0]["uuid"] = "GPU-2";
  const MeasuredResult other = parse_bench_result(document.dump(), "b.json");
  EXPECT_EQ(other.gpus, result.gpus);
  EXPECT_EQ(other.conditions, result.conditions);
  EXPECT_NE(other.circumstances, result.circumstances);
  document["command"] = "gemm";  // computes on the CPU
  EXPECT_EQ(parse_bench_result(document.dump(), "c.json").gpus, std::nullopt);
  document["host"]["gpus"] = 3;
  EXPECT_THAT(refusal(document.dump()), HasSubstr("gpus"));
}

TEST(MeasuredResult, HostsAreCountedAsSlurmNamesThem) {
  auto document = bench_json({1});
  const MeasuredResult old = parse_bench_result(document.dump(), "old.json");
  document["host"]["node"] = "n7";
  const MeasuredResult result = parse_bench_result(document.dump(), "a.json");
  EXPECT_EQ(result.conditions, old.conditions);
  EXPECT_EQ(result.circumstances.at("host.node"), "n7");
  for (const char* const node : {"n7", "n8"}) {  // two of Slurm's nodes on one machine
    document["ranks"].push_back({{"rank", 0}, {"host", "vm"}, {"node", node}, {"cpus", "0-1"}});
  }
  EXPECT_EQ(parse_bench_result(document.dump(), "b.json").conditions.at("hosts of ranks"), "2");
  for (nlohmann::json& rank : document["ranks"]) {
    rank.erase("node");
  }
  EXPECT_EQ(parse_bench_result(document.dump(), "c.json").conditions.at("hosts of ranks"), "1");
  document["ranks"][0] = 3;
  EXPECT_THAT(refusal(document.dump()), HasSubstr("host"));
}

TEST(MeasuredResult, TextsStayTexts) {
  auto document = bench_json({1});
  document["results"][0]["params"]["\"<b>&'"] = "<script>'\"\x1b[2J";
  const MeasuredResult result = parse_bench_result(document.dump(), "a.json");
  EXPECT_EQ(result.rows[0].params.at("\"<b>&'"), "<script>'\"\x1b[2J");
}

TEST(MeasuredResult, SchemasAreWholeNumbers) {
  for (const nlohmann::json& schema : {nlohmann::json("2"), nlohmann::json(2.0)}) {
    auto document = bench_json({1});
    document["schema"] = schema;
    EXPECT_THAT(message_of<DataError>([&] { (void)parse_bench_result(document.dump(), "a.json"); }),
                HasSubstr("field 'schema' is " + schema.dump() + ", not a whole number"));
  }
}

TEST(MeasuredResult, PairsAreSamples) {
  auto document = bench_json({1});
  document["results"][0].erase("samples");
  document["results"][0]["matrices"] = {{"members", {0, 1}},
                                        {"hosts", {"n1", "n2"}},
                                        {"bandwidth_GBps", {{nullptr, 5.0}, {4.0, nullptr}}},
                                        {"latency_us", {{nullptr, 1.0}, {3.0, nullptr}}}};
  const MeasuredResult result = parse_bench_result(document.dump(), "a.json");
  std::map<std::string, std::vector<double>> values;
  for (const SampleSet& samples : result.rows[0].samples) {
    values[samples.name] = samples.values;
  }
  EXPECT_THAT(values["bandwidth_GBps"], ElementsAre(5, 4));
  EXPECT_THAT(values["slowest_bandwidth_GBps"], ElementsAre(4));
  EXPECT_THAT(values["latency_us"], ElementsAre(1, 3));
  EXPECT_THAT(values["slowest_latency_us"], ElementsAre(3));
  document["results"][0]["matrices"]["latency_us"][0][1] = "x";
  EXPECT_THROW((void)parse_bench_result(document.dump(), "a.json"), DataError);
}

constexpr const char* kMetrics = R"({"step":1,"step_ms":90,"data_wait_ms":5,"time":10}
{"step":2,"step_ms":30,"data_wait_ms":1,"time":11}
torn {
[1]
{"step":"x","step_ms":7}
{"step":3,"step_ms":null}
{"step":4,"step_ms":31,"data_wait_ms":2,"time":12}
{"step":5,"step_ms":3)";

TEST(RunResult, ReadsStepsAfterTheFirst) {
  const MeasuredResult run = parse_run_result(kMetrics, "train:\n  global_batch: 8\n  seed: 4\n",
                                              R"({"event":"start","ranks":2,"host":"n1"}
{"event":"start","ranks":4,"host":"n1"}
{"event":"nodes","ranks":[2,2]}
{"event":"nodes","ranks":["x"]}
{"event":7})",
                                              "runs/a");
  ASSERT_EQ(run.rows.size(), 1U);
  EXPECT_THAT(run.rows[0].samples[0].values, ElementsAre(30, 31));
  EXPECT_THAT(run.rows[0].samples[1].values, ElementsAre(1, 2));
  EXPECT_FALSE(run.rows[0].samples[0].reference);
  EXPECT_TRUE(run.rows[0].samples[1].reference);
  EXPECT_EQ(run.conditions.at("train.global_batch"), "8");
  EXPECT_EQ(run.conditions.at("start.ranks"), "2, 4");
  EXPECT_EQ(run.conditions.count("train.seed"), 0U);
  EXPECT_EQ(run.circumstances.at(kSpread), "2 ranks on each of 2 nodes");
  EXPECT_EQ(spread_text({4}), "4 ranks on 1 node");
  EXPECT_EQ(spread_text({3, 1, 1}), "1 to 3 ranks on each of 3 nodes");
  EXPECT_EQ(run.time, 12);
  EXPECT_EQ(run.damaged_lines.count, 3) << "not the last one, which was being written";
  EXPECT_EQ(run.damaged_lines.first, 3);
}

TEST(RunResult, KeysThatChangeNoSpeedAreNoConditions) {
  const MeasuredResult run = parse_run_result(
      kMetrics, "launch:\n  on_event: x\nenergy:\n  pue: 1.2\nmetrics:\n  openmetrics: a.prom\n",
      "", "runs/a");
  for (const char* key : {"launch.on_event", "energy.pue", "metrics.openmetrics"}) {
    EXPECT_EQ(run.conditions.count(key), 0U) << key;
    EXPECT_EQ(run.circumstances.count(key), 1U) << key;
  }
}

TEST(RunResult, RefusesRunsWithoutSteps) {
  const auto parse = [](const char* metrics, const char* config) {
    return message_of<DataError>([&] { (void)parse_run_result(metrics, config, "", "runs/a"); });
  };
  EXPECT_THAT(parse("", ""), HasSubstr("fewer than two logged steps: nothing"));
  EXPECT_THAT(parse("\n\n", ""), HasSubstr("steps, and 2 damaged lines (the first is line 1): n"));
  EXPECT_THAT(parse("{\"step\":1,\"step_ms\":2}\n", ""), HasSubstr("fewer than two"));
  EXPECT_THAT(parse(kMetrics, "a: [unclosed"), HasSubstr("runs/a/config.yaml:1"));
}

TEST(RunResult, NamesAFolderThatIsNoRun) {
  EXPECT_THROW((void)read_measured_result("/nonexistent.json"), NotFound);
  EXPECT_THAT(message_of<NotFound>([] { (void)read_measured_result("/proc"); }),
              HasSubstr("metrics.jsonl"));
}

TEST(MeasuredResult, RowsOfTwoHostsAreTheSameRows) {
  const auto on = [](const std::vector<std::string>& hosts) {
    auto document = bench_json({1});
    const auto row = document["results"][0];
    document["results"].clear();
    for (const std::string& host : hosts) {
      document["results"].push_back(row);
      document["results"].back()["params"]["host"] = host;
    }
    return parse_bench_result(document.dump(), hosts.front());
  };
  MeasuredResult a = on({"n1"});
  MeasuredResult b = on({"n2"});
  EXPECT_NE(a.rows[0].key(), b.rows[0].key());
  forget_lone_hosts(a, b);
  EXPECT_EQ(a.rows[0].key(), b.rows[0].key());
  MeasuredResult several = on({"n1", "n2"});
  MeasuredResult one = on({"n1"});
  forget_lone_hosts(several, one);
  EXPECT_EQ(several.rows[0].key(), one.rows[0].key()) << "names tell which of them it is";
  EXPECT_NE(several.rows[1].key(), one.rows[0].key());
}

}  // namespace
}  // namespace trireme
