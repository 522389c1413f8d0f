#include "slurm/health/measures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/sealed_json.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Measures a_node() {
  Measures node;
  node.node = "n1";
  node.rates["memory"] = {20000, 100, "MB/s"};
  node.rates["disk write"] = {800, 200, "MB/s"};
  node.facts["link ib0"] = "4: ACTIVE 200 Gb/sec";
  node.time = 1'700'000'000;
  node.folder = "/scratch";
  node.counters["link ib0 symbol_error"] = 7;
  return node;
}

TEST(Measures, MedianAndDeviation) {
  const Rate rate = rate_of({1, 2, 3, 4, 100}, "MB/s");
  EXPECT_EQ(rate.median, 3);
  EXPECT_EQ(rate.deviation, 1);
}

TEST(Measures, ThroughAFile) {
  const Measures node = a_node();
  const Measures back = parse_baseline(baseline_text(node));
  EXPECT_EQ(baseline_text(back), baseline_text(node));
  EXPECT_EQ(back.folder, "/scratch");
  EXPECT_THAT(compare(back, node, 1), IsEmpty());
}

// A baseline is refused whichever byte is changed and wherever the file ends.
TEST(Measures, DamagedFilesAreRefused) {
  const std::string text = baseline_text(a_node());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(parse_baseline(damaged), DataError) << at;
    if (at + 1 < text.size()) {
      EXPECT_THROW(parse_baseline(text.substr(0, at)), DataError) << at;
    }
  }
  EXPECT_THROW(parse_baseline("{}"), DataError);
}

TEST(Measures, AFileThatIsNoBaselineIsNamedOnce) {
  const TempFolder folder;
  const auto refusal = [](const std::filesystem::path& file) {
    return message_of<DataError>([&] { (void)load_baseline(file); });
  };
  const std::filesystem::path file = folder.path() / "node.baseline";
  write_named_file(file, "");
  EXPECT_EQ(refusal(file), file.string() +
                               ": the file is empty: restore it from a copy; on a "
                               "healthy node, trireme health --save-baseline " +
                               file.string() + " makes a new one");
  const std::string text = baseline_text(a_node());
  write_named_file(file, text.substr(0, text.size() / 2));
  EXPECT_THAT(refusal(file), HasSubstr("cut short"));
  const std::string of_folder = refusal(folder.path());
  EXPECT_EQ(of_folder.find(folder.path().string()), of_folder.rfind(folder.path().string()));
  EXPECT_THAT(of_folder, Not(HasSubstr("--save-baseline")));
  write_named_file(file, text);
  EXPECT_EQ(load_baseline(file).folder, "/scratch");
}

TEST(Measures, SlowPartsAreNamed) {
  const Measures was = a_node();
  Measures now = was;
  now.rates["memory"].median = 9400;
  const auto complaints = compare(now, was, 0.9);
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0],
              HasSubstr("memory: 9400 MB/s, 47 % of the baseline's 20000 (required: 90 %)"));
}

TEST(Measures, ItsOwnScatterIsAllowed) {
  const Measures was = a_node();
  Measures now = was;
  now.rates["disk write"].median = 210;  // within three deviations of 297 from 800
  EXPECT_THAT(compare(now, was, 0.9), IsEmpty());
  now.rates["disk write"].median = 190;  // less than a quarter of 800
  EXPECT_THAT(compare(now, was, 0.9), SizeIs(1));
  now.rates["disk write"].median = 800;
  // Below 90 % of 20000 and more than three deviations of 148 away.
  now.rates["memory"].median = 17900;
  EXPECT_THAT(compare(now, was, 0.9), SizeIs(1));
  now.rates["memory"].median = 19000;  // more than three deviations away, but not below 90 %
  EXPECT_THAT(compare(now, was, 0.9), IsEmpty());
}

TEST(Measures, LinksWhoseErrorsGrowAreNamed) {
  const Measures was = a_node();
  Measures now = was;
  now.counters["link ib0 symbol_error"] = 17;
  now.counters["link ib1 symbol_error"] = 1000;  // the baseline does not have this counter
  EXPECT_THAT(compare(now, was, 0.9), IsEmpty());
  now.counters["link ib0 symbol_error"] = 18;
  ASSERT_THAT(compare(now, was, 0.9), SizeIs(1));
  EXPECT_THAT(compare(now, was, 0.9)[0],
              HasSubstr("link ib0 symbol_error: 11 errors since the baseline was saved"));
  now.time += 2 * 86400;  // ten errors per day are allowed
  EXPECT_THAT(compare(now, was, 0.9), IsEmpty());
  now.time = was.time;
  now.counters["link ib0 symbol_error"] = 6;  // the counter was reset when the node was restarted
  EXPECT_THAT(compare(now, was, 0.9), IsEmpty());
}

// Baselines of programs without counters remain valid.
TEST(Measures, OlderBaselinesAreRead) {
  const Measures back = parse_baseline(seal_json({{"format", "trireme health baseline"},
                                                  {"version", 1},
                                                  {"node", "n1"},
                                                  {"facts", nlohmann::ordered_json::object()},
                                                  {"rates", nlohmann::ordered_json::object()}}));
  EXPECT_EQ(back.time, 0);
  EXPECT_EQ(back.folder, "");
  EXPECT_THAT(compare(a_node(), back, 0.9), IsEmpty());
}

TEST(Measures, WhatIsGoneOrChanged) {
  const Measures was = a_node();
  Measures now = was;
  now.rates.erase("disk write");
  now.facts["link ib0"] = "1: DOWN 10 Gb/sec";
  now.facts["new"] = "x";
  EXPECT_THAT(compare(now, was, 0.9), SizeIs(2));
  now.facts.erase("link ib0");
  EXPECT_THAT(compare(now, was, 0.9)[1], HasSubstr("gone"));
}

}  // namespace
}  // namespace trireme
