#include "benchmarks/noise/noise.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/noise/quanta.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Quanta, FindDetoursAndWhatTheyCost) {
  WorkQuanta quanta;
  for (int i = 0; i < 98; ++i) {
    quanta.seconds.push_back(1e-3);
  }
  quanta.seconds.insert(quanta.seconds.end(), {5e-3, 3e-3});
  for (std::size_t i = 0; i < quanta.seconds.size(); ++i) {
    quanta.begins.push_back(static_cast<double>(i));
  }
  const WorkStatistics found = evaluate(quanta);
  EXPECT_DOUBLE_EQ(found.least, 1e-3);
  EXPECT_DOUBLE_EQ(found.median, 1e-3);
  EXPECT_DOUBLE_EQ(found.p99, 3e-3);
  EXPECT_DOUBLE_EQ(found.p999, 5e-3);
  EXPECT_NEAR(found.lost_fraction, 6.0 / 106, 1e-12);
  EXPECT_EQ(found.detours, 2);
  ASSERT_EQ(found.worst.size(), 2U);
  EXPECT_DOUBLE_EQ(found.worst[0].at, 98);
  EXPECT_DOUBLE_EQ(found.worst[0].seconds, 4e-3);
}

// Constant samples have no detours, and zeros no rate.
TEST(Quanta, InventNothing) {
  const WorkStatistics constant = evaluate(WorkQuanta{{2, 2, 2}, {0, 2, 4}});
  EXPECT_EQ(constant.lost_fraction, 0);
  EXPECT_EQ(constant.detours, 0);
  EXPECT_TRUE(constant.worst.empty());
  EXPECT_EQ(evaluate(WorkQuanta{{0, 0}, {0, 0}}).lost_fraction, 0);
  EXPECT_EQ(evaluate(std::vector<double>{0, 0}).lost_fraction, 0);
  EXPECT_EQ(evaluate(std::vector<double>{0, 0}).empty, 2);
}

TEST(Quanta, CountLostWork) {
  const TimeStatistics found = evaluate(std::vector<double>{10, 10, 8, 0});
  EXPECT_EQ(found.most, 10);
  EXPECT_EQ(found.least, 0);
  EXPECT_EQ(found.empty, 1);
  EXPECT_DOUBLE_EQ(found.lost_fraction, 0.3);
}

TEST(Quanta, MeasureThisThread) {
  const std::int64_t units = units_in(50e-6);
  EXPECT_GE(units, 1);
  const WorkQuanta quanta = fixed_work(units, 0.01, 1000);
  EXPECT_EQ(quanta.seconds.size(), quanta.begins.size());
  EXPECT_GT(evaluate(quanta).least, 0);
  EXPECT_EQ(fixed_work(units, 3600, 7).seconds.size(), 7U);
  const std::vector<double> work = fixed_time(1e-3, 0.01, 1000);
  EXPECT_EQ(work.size(), 10U);
  EXPECT_GT(evaluate(work).most, 0);
}

TEST(Interrupts, AreThoseOfOneProcessor) {
  const TempFolder root;
  EXPECT_FALSE(interrupts_of(0, root.path()));
  fs::create_directories(root.path() / "proc");
  std::ofstream(root.path() / "proc/interrupts")
      << "           CPU0       CPU2\n"
         "  0:         45          7   IO-APIC   2-edge      timer\n"
         "LOC:        100       2000   Local timer interrupts\n"
         "ERR:          3\n";
  EXPECT_EQ(interrupts_of(0, root.path()), 148);
  EXPECT_EQ(interrupts_of(2, root.path()), 2007);
  EXPECT_FALSE(interrupts_of(1, root.path()));
}

TEST(NoiseText, NamesTheWorstCore) {
  const auto results = bench_noise({.quantum_us = 50, .duration = 0.02});
  const std::string text = noise_text(results);
  EXPECT_THAT(text, HasSubstr("# Trireme noise, work quanta of 50 us"));
  EXPECT_THAT(text, HasSubstr("# Trireme noise, time quanta of 50 us"));
  EXPECT_THAT(text, HasSubstr("# longest detour"));
}

}  // namespace
}  // namespace trireme
