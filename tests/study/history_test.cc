#include "src/study/history.h"

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/study/result_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

MeasuredResult result_at(double time, double value, const std::string& host = "n1") {
  auto document = bench_json({value, value, value});
  document["time"] = time;
  document["host"]["name"] = host;
  return parse_bench_result(document.dump(), "test");
}

std::string read_file_if_there(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? read_file(path) : "";
}

TEST(History, KeepsWhatIsAddedOnce) {
  const TempFolder folder;
  const auto path = folder.path() / "history.jsonl";
  EXPECT_EQ(add_to_history(path, result_at(10, 5)).lines, 1);
  EXPECT_EQ(add_to_history(path, result_at(20.25, 6)).lines, 1);
  const Added again = add_to_history(path, result_at(20.25, 6));
  EXPECT_EQ(again.lines, 0);
  EXPECT_EQ(again.present, 1);
  add_to_history(path, result_at(30, 7, "n2\"<b>'"));
  const History history = read_history(path);
  ASSERT_EQ(history.series.size(), 2U);
  EXPECT_EQ(history.series[0].entries.size(), 2U);
  EXPECT_EQ(history.series[0].entries[1].median, 6);
  EXPECT_EQ(history.series[1].host, "n2\"<b>'");
  EXPECT_EQ(history.series[0].params.at("m"), "96");
}

TEST(History, NodesOfSlurmOnOneMachineHaveSeriesOfTheirOwn) {
  const TempFolder folder;
  const auto path = folder.path() / "history.jsonl";
  double time = 10;
  for (const char* const node : {"n1", "n2", "n1"}) {
    auto document = bench_json({5, 5, 5});
    document["time"] = time++;
    document["host"]["name"] = "vm";
    document["host"]["node"] = node;
    add_to_history(path, parse_bench_result(document.dump(), "test"));
  }
  const History history = read_history(path);
  ASSERT_EQ(history.series.size(), 2U);
  EXPECT_EQ(history.series[0].host, "n1");
  EXPECT_EQ(history.series[0].entries.size(), 2U);
  EXPECT_EQ(history.series[1].host, "n2");
}

TEST(History, TheGpusOfAHostBeginASeriesOnlyWhereTheyCompute) {
  const auto machine = [](const char* command, const nlohmann::json& gpus) {
    auto document = bench_json({5, 5, 5});
    document["command"] = command;
    if (!gpus.is_null()) {
      document["host"]["gpus"] = gpus;
    }
    const TempFolder folder;
    const auto path = folder.path() / "history.jsonl";
    add_to_history(path, parse_bench_result(document.dump(), "test"));
    return read_history(path).series.at(0).machine;
  };
  const nlohmann::json gpu = {{{"name", "NVIDIA H100"}, {"uuid", "GPU-1"}}};
  EXPECT_EQ(machine("gemm", gpu), machine("gemm", nullptr));
  EXPECT_EQ(machine("train", nlohmann::json::array()), machine("train", nullptr));
  EXPECT_NE(machine("train", gpu), machine("train", nullptr));
}

TEST(History, ATornLineCostsOneResultAlone) {
  const TempFolder folder;
  const auto path = folder.path() / "history.jsonl";
  add_to_history(path, result_at(10, 5));
  const std::string whole = read_file(path);
  for (std::size_t length = 1; length < whole.size(); length += 9) {
    std::ofstream(path) << whole << whole.substr(0, length);  // the machine stops here
    add_to_history(path, result_at(20, 6));
    const History history = read_history(path);
    EXPECT_EQ(history.torn_lines, 1) << length;
    ASSERT_EQ(history.series.size(), 1U);
    EXPECT_EQ(history.series[0].entries.size(), 2U);
  }
}

TEST(History, SeveralWritersAtOnce) {
  const TempFolder folder;
  const auto path = folder.path() / "history.jsonl";
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&path, writer] {
      for (int i = 0; i < 10; ++i) {
        add_to_history(path, result_at(1 + writer * 100 + i, 5));
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(read_history(path).series.at(0).entries.size(), 40U);
  EXPECT_EQ(read_history(path).torn_lines, 0);
}

TEST(History, RefusesOtherFiles) {
  const auto refusal = [](const std::string& text) {
    return message_of<DataError>([&] { (void)parse_history(text, "h.jsonl"); });
  };
  EXPECT_THAT(refusal("{}\n"), HasSubstr("h.jsonl:1: no line of a history"));
  EXPECT_THAT(refusal("\n[1]\n"), HasSubstr("h.jsonl:2: "));
  EXPECT_THAT(refusal("{\"schema\": 2}"), HasSubstr("another version"));
  EXPECT_THAT(refusal("{\"schema\": 1, \"schema\": 1}"), HasSubstr("twice"));
  const TempFolder folder;
  const auto path = folder.path() / "h.jsonl";
  add_to_history(path, result_at(10, 5));
  const std::string line_before = read_file(path);
  std::string line = line_before;
  const std::size_t at = line.find("\"median\":5.0");
  ASSERT_NE(at, std::string::npos) << line;
  EXPECT_THAT(refusal(line.replace(at, 12, "\"median\":-5")), HasSubstr("median"));
  for (const char* other : {"torn {\n", "NaN\n", "1e999\n", "{\n  \"version\": 4\n}\n",
                            "\x7F"
                            "ELF"}) {
    EXPECT_THAT(refusal(other), HasSubstr("no line of a history")) << other;
  }
  EXPECT_THAT(refusal(std::string(4096, '\0')), HasSubstr("h.jsonl: zeros instead of a history"));
  EXPECT_EQ(parse_history(std::string("\0\0\n", 3) + line_before, "h").torn_lines, 1);
  EXPECT_EQ(parse_history(std::string("{\"sch\n{\"schema\":1,\"ti\n\0\0", 25), "h").torn_lines, 3);
  std::ofstream(path) << "{\n  \"version\": 4\n}\n";
  EXPECT_THROW(add_to_history(path, result_at(10, 5)), DataError);
  EXPECT_EQ(read_file(path), "{\n  \"version\": 4\n}\n");  // nothing was added to it
}

TEST(History, AFullDiskLeavesTheOldHistory) {
  const SmallFileSystem disk(std::size_t{16} << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  const auto path = disk.path() / "history.jsonl";
  double time = 10;
  std::string before;
  const std::string full = message_of<IoError>([&] {
    for (; time < 1000; ++time) {
      before = read_file_if_there(path);
      add_to_history(path, result_at(time, 5));
    }
  });
  EXPECT_THAT(full, HasSubstr("No space left on device"));
  EXPECT_EQ(read_file(path), before) << "not a part of the line that did not fit";
  EXPECT_EQ(read_history(path).series.at(0).entries.size(), static_cast<std::size_t>(time) - 10);
}

TEST(History, AFullDiskLeavesNoNewFile) {
  const SmallFileSystem disk(std::size_t{16} << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  std::ofstream(disk.path() / "filler") << std::string(std::size_t{64} << 10, 'x');
  const auto path = disk.path() / "history.jsonl";
  EXPECT_THROW(add_to_history(path, result_at(1, 5)), IoError);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path).close();
  EXPECT_THROW(add_to_history(path, result_at(1, 5)), IoError);
  EXPECT_TRUE(std::filesystem::exists(path)) << "it is not this command's";
}

TEST(History, NamesTheFileWithAnImpossibleNumber) {
  const TempFolder folder;
  const auto refused = [](const nlohmann::json& document) {
    return message_of<DataError>([&] {
      const TempFolder history;
      add_to_history(history.path() / "h.jsonl", parse_bench_result(document.dump(), "a.json"));
    });
  };
  EXPECT_THAT(refused(bench_json({1e308, 1e308})), HasSubstr("time_us is 1e+308: no measurement"));
  nlohmann::json late = bench_json({1, 2});
  late["time"] = 1e308;
  EXPECT_THAT(refused(late), HasSubstr("a.json: time is 1e+308"));
  EXPECT_THAT(message_of<DataError>([] {
                (void)parse_run_result("{\"step\":1,\"step_ms\":1}\n{\"step\":2,\"step_ms\":1e308}",
                                       "", "", "runs/a");
              }),
              HasSubstr("runs/a/metrics.jsonl: step_ms is 1e+308"));
}

TEST(History, LevelsShowChanges) {
  HistorySeries series;
  series.samples = "time_us";
  for (int i = 0; i < 40; ++i) {
    const double level = i < 20 ? 100 : i < 30 ? 110 : 109.5;
    series.entries.push_back({1.0 + i, level * (1 + 0.001 * ((i * 7) % 11 - 5)), 0, 0, ""});
  }
  const std::vector<Level> levels = levels_of(series, 0.02);
  ASSERT_EQ(levels.size(), 2U);  // the change of 0.5 % does not count
  EXPECT_EQ(levels[1].begin, 20U);
  EXPECT_EQ(levels[1].end, 40U);
  EXPECT_NEAR(levels[1].change, 0.1, 0.01);
  EXPECT_TRUE(levels[1].slower);
  series.samples = "bytes_per_s";
  EXPECT_FALSE(levels_of(series, 0.02)[1].slower);
}

}  // namespace
}  // namespace trireme
