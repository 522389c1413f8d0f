#include "src/study/comparison.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/base/philox.h"
#include "tests/study/result_text.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kTries = 50;

MeasuredResult result_of(const std::vector<double>& values, const std::string& name = "time_us") {
  return parse_bench_result(bench_json(values, name).dump(), "test");
}

RowComparison compared(const std::vector<double>& a, const std::vector<double>& b,
                       const std::string& name = "time_us") {
  const MeasuredResult first = result_of(a, name);
  const MeasuredResult second = result_of(b, name);
  RowComparison row = compare_results(first, second, {}).rows.at(0);
  row.row = nullptr;
  return row;
}

// Times that this program has measured on a machine with other load.
std::vector<double> measured(const char* name) {
  const std::string path = std::string(TRIREME_SOURCE_DIR) + "/tests/study/measured_samples.json";
  return nlohmann::json::parse(read_file(path)).at(name).get<std::vector<double>>();
}

// Divides the values at random into two halves.
std::pair<std::vector<double>, std::vector<double>> split(std::vector<double> values, int seed) {
  for (std::size_t i = values.size() - 1; i > 0; --i) {
    const PhiloxCounter bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0},
                                      philox_key(static_cast<std::uint64_t>(seed)));
    std::swap(values[i], values[bits[0] % (i + 1)]);
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  return {{values.begin(), middle}, {middle, values.end()}};
}

class RealSamples : public testing::TestWithParam<const char*> {};

TEST_P(RealSamples, AgainstThemselvesRaiseTwoFalseAlarmsAtMost) {
  int alarms = 0;
  for (int i = 0; i < kTries; ++i) {
    const auto [a, b] = split(measured(GetParam()), i);
    alarms += compared(a, b, GetParam()).verdict == ChangeVerdict::regression ? 1 : 0;
  }
  RecordProperty("false_alarms", alarms);
  EXPECT_LE(alarms, 2);
}

TEST_P(RealSamples, APlantedSlowdownOfFivePercentIsFound) {
  int found = 0;
  for (int i = 0; i < kTries; ++i) {
    auto [a, b] = split(measured(GetParam()), i);
    for (double& value : b) {
      value *= 1.05;
    }
    found += compared(a, b, GetParam()).verdict == ChangeVerdict::regression ? 1 : 0;
  }
  RecordProperty("found", found);
  EXPECT_GE(found, 48);
}

INSTANTIATE_TEST_SUITE_P(Measured, RealSamples, testing::Values("step_ms", "in_place_us"));

std::vector<double> around(double middle, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(middle * (1 + 0.001 * ((i * 7) % 11 - 5)));
  }
  return values;
}

TEST(Comparison, DirectionFollowsFromTheUnit) {
  EXPECT_EQ(compared(around(100, 30), around(110, 30), "time_us").verdict,
            ChangeVerdict::regression);
  EXPECT_EQ(compared(around(100, 30), around(90, 30), "time_us").verdict,
            ChangeVerdict::improvement);
  EXPECT_EQ(compared(around(100, 30), around(90, 30), "bytes_per_s").verdict,
            ChangeVerdict::regression);
  EXPECT_EQ(compared(around(100, 30), around(110, 30), "bytes_per_s").verdict,
            ChangeVerdict::improvement);
  const RowComparison odd = compared(around(100, 30), around(110, 30), "apples");
  EXPECT_EQ(odd.verdict, ChangeVerdict::not_judged);
  EXPECT_THAT(odd.why, HasSubstr("unit"));
}

// Every unit in the schema of the benchmarks has a direction.
TEST(Comparison, KnowsEveryKindOfSamplesInTheSchema) {
  const std::string path =
      std::string(TRIREME_SOURCE_DIR) + "/benchmarks/schema/bench-2.schema.json";
  const auto schema = nlohmann::json::parse(read_file(path));
  int seen = 0;
  for (const auto& [name, of_name] : schema.at("$defs").items()) {
    if (!name.starts_with("result_")) {
      continue;
    }
    for (const auto& [samples, value] :
         of_name.at("properties").at("samples").at("properties").items()) {
      EXPECT_NE(better_of(samples), Better::unknown) << name << " " << samples;
      ++seen;
    }
  }
  EXPECT_GT(seen, 20);
}

TEST(Comparison, SmallAndUncertainChangesAreNoRegressions) {
  EXPECT_EQ(compared(around(100, 30), around(101, 30)).verdict, ChangeVerdict::unchanged);
  const RowComparison few = compared({100, 101, 99}, {120, 121, 119});
  EXPECT_EQ(few.verdict, ChangeVerdict::undecided);
  EXPECT_THAT(few.why, HasSubstr("too few samples"));
  EXPECT_NEAR(few.change.estimate, 0.2, 0.01);
  EXPECT_TRUE(std::isinf(few.change.low));
}

TEST(Comparison, ZeroAndConstantSamples) {
  EXPECT_EQ(compared({0, 0, 0}, {0, 0, 0}).verdict, ChangeVerdict::not_judged);
  EXPECT_EQ(compared({5, -1, 3}, {5, 1, 3}).why, "samples are zero or negative");
  // Nothing is made up for a side without samples.
  const RowComparison half = compared({5, 5, 5}, {});
  EXPECT_EQ(half.median_a, 5);
  EXPECT_TRUE(std::isnan(half.median_b));
  const std::vector<double> constant(20, 5.0);
  EXPECT_EQ(compared(constant, constant).verdict, ChangeVerdict::unchanged);
  EXPECT_EQ(compared(constant, std::vector<double>(20, 6.0)).verdict, ChangeVerdict::regression);
}

TEST(Comparison, RowsAreMatchedByTheirParameters) {
  auto first = bench_json(around(100, 20));
  auto second = bench_json(around(100, 25));
  first["results"].push_back(first["results"][0]);
  first["results"][1]["params"]["m"] = 192;
  second["results"].push_back(second["results"][0]);
  second["results"][1]["params"]["m"] = 384;
  const MeasuredResult a = parse_bench_result(first.dump(), "a");
  const MeasuredResult b = parse_bench_result(second.dump(), "b");
  const Comparison comparison = compare_results(a, b, {});
  EXPECT_EQ(comparison.rows.size(), 1U);  // although the number of rounds differs
  EXPECT_THAT(comparison.only_a, ElementsAre("gemm m=192"));
  EXPECT_THAT(comparison.only_b, ElementsAre("gemm m=384"));
}

// Nothing is converted, and nothing disappears.
TEST(Comparison, TitlesLeaveOutWhatAllRowsShare) {
  auto document = bench_json({1});
  auto row = document["results"][0];
  row["params"]["m"] = 128;
  document["results"].push_back(row);
  const MeasuredResult result = parse_bench_result(document.dump(), "test");
  const RowTitles title_of(result);
  EXPECT_EQ(title_of(result.rows[0]), "gemm m=96");
  EXPECT_EQ(title_of(result.rows[1]), "gemm m=128");
  EXPECT_EQ(title_of.shared_by("gemm"), "precision=fp32");
  EXPECT_EQ(title_of.shared_by("mem"), "");
}

// A search of all rows for each row would take minutes, and the test its timeout.
TEST(Comparison, ManyRows) {
  MeasuredResult a = result_of({1, 2, 3});
  for (int i = 0; i < 30000; ++i) {
    a.rows.push_back(a.rows.front());
    a.rows.back().params["m"] = std::to_string(1000 + i);
  }
  MeasuredResult b = a;
  for (int i = 0; i < 15000; ++i) {
    b.rows.back().params["m"] = std::to_string(100000 + i);
    std::swap(b.rows.back(), b.rows[static_cast<std::size_t>(i)]);
  }
  const Comparison comparison = compare_results(a, b, {});
  EXPECT_EQ(comparison.rows.size() + comparison.only_a.size(), 30001U);
  EXPECT_FALSE(comparison.only_a.empty());
}

TEST(Comparison, SamplesInAnotherUnitAreOtherSamples) {
  auto first = bench_json(around(100, 20));
  auto second = first;
  auto& samples = second["results"][0]["samples"];
  samples["time_ms"] = samples["time_us"];
  samples.erase("time_us");
  const MeasuredResult a = parse_bench_result(first.dump(), "a");
  const MeasuredResult b = parse_bench_result(second.dump(), "b");
  const Comparison comparison = compare_results(a, b, {});
  EXPECT_TRUE(comparison.rows.empty());
  EXPECT_THAT(comparison.only_a, ElementsAre("gemm: time_us"));
  EXPECT_THAT(comparison.only_b, ElementsAre("gemm: time_ms"));
}

TEST(Comparison, SaysWhyResultsAreUnlike) {
  const auto document = bench_json(around(100, 20));
  const MeasuredResult a = parse_bench_result(document.dump(), "a");
  EXPECT_THAT(differences(a, a), IsEmpty());
  auto other = document;
  other["program"]["commit"] = "def";  // what the comparison is made for
  other["host"]["name"] = "n2";
  EXPECT_THAT(differences(a, parse_bench_result(other.dump(), "b")), IsEmpty());
  other["host"]["cores"] = 64;
  other["environment"]["OMP_NUM_THREADS"] = "1";
  EXPECT_THAT(differences(a, parse_bench_result(other.dump(), "b")),
              ElementsAre("environment.OMP_NUM_THREADS: not set and 1", "host.cores: 2 and 64"));
  other["command"] = "mem";
  EXPECT_THAT(differences(a, parse_bench_result(other.dump(), "b")),
              ElementsAre("one measures gemm, the other mem"));
}

TEST(Comparison, GpusAreAConditionWhereBothDocumentsNameThem) {
  const auto measured = [](const char* command, const nlohmann::json& gpus) {
    auto document = bench_json(around(100, 20));
    document["command"] = command;
    if (!gpus.is_null()) {
      document["host"]["gpus"] = gpus;
      document["host"]["gpu_driver"] = gpus.empty() ? nlohmann::json() : "580.65.06";
      document["host"]["gpu_error"] = nullptr;
    }
    return parse_bench_result(document.dump(), command);
  };
  const nlohmann::json one = {{{"name", "NVIDIA H100"}, {"uuid", "GPU-1"}}};
  const nlohmann::json two = {{{"name", "NVIDIA H200"}, {"uuid", "GPU-2"}}};
  EXPECT_THAT(differences(measured("train", one), measured("train", two)),
              ElementsAre("host.gpus: NVIDIA H100 and NVIDIA H200"));
  EXPECT_THAT(differences(measured("train", nlohmann::json::array()), measured("train", one)),
              ElementsAre("host.gpus: none and NVIDIA H100"));
  EXPECT_THAT(differences(measured("train", nullptr), measured("train", one)), IsEmpty());
  EXPECT_THAT(differences(measured("gemm", one), measured("gemm", two)), IsEmpty());
  EXPECT_THAT(differences(measured("gemm", nullptr), measured("gemm", one)), IsEmpty());
}

// Sizes that all rows of a document share are not in their titles.
TEST(Comparison, RowsOfAnotherSizeSayWhichSize) {
  const auto with_arrays = [](std::int64_t bytes) {
    auto document = bench_json({1, 2, 3});
    auto row = document["results"][0];
    document["results"].clear();
    for (const char* const kernel : {"copy", "add"}) {
      row["params"] = {{"kernel", kernel}, {"array_bytes", bytes}};
      document["results"].push_back(row);
    }
    return parse_bench_result(document.dump(), "test");
  };
  const Comparison comparison = compare_results(with_arrays(8), with_arrays(16), {});
  EXPECT_THAT(comparison.only_a, ElementsAre("gemm kernel=copy array_bytes=8 (the other: 16)",
                                             "gemm kernel=add array_bytes=8 (the other: 16)"));
  EXPECT_EQ(comparison.only_b.size(), 2U);
}

}  // namespace
}  // namespace trireme
