#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/io/io_engine.h"
#include "benchmarks/io/io_layout.h"
#include "benchmarks/io/io_pattern.h"
#include "benchmarks/io/ior_table.h"
#include "benchmarks/io/metadata.h"
#include "io/checkpoint/staging.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

IoLayout small_layout() {
  IoLayout layout;
  layout.block_bytes = 64;
  layout.transfer_bytes = 16;
  layout.segments = 3;
  layout.ranks = 5;
  return layout;
}

TEST(IoLayout, SegmentsOfASharedFileHoldABlockPerRank) {
  const IoLayout layout = small_layout();
  EXPECT_EQ(layout.file_bytes(), 3 * 5 * 64);
  // IOR: segment * ranks * block + rank * block + transfer (WriteOrRead in src/ior.c).
  EXPECT_EQ(layout.offset(2, 0), 2 * 64);
  EXPECT_EQ(layout.offset(2, 3), 2 * 64 + 3 * 16);
  EXPECT_EQ(layout.offset(2, 4), 5 * 64 + 2 * 64);
}

TEST(IoLayout, AFilePerProcessHoldsItsOwnBlocks) {
  IoLayout layout = small_layout();
  layout.file_per_process = true;
  EXPECT_EQ(layout.file_bytes(), 3 * 64);
  EXPECT_EQ(layout.offset(4, 5), 64 + 16);
}

TEST(IoLayout, EveryOrderVisitsEachPlaceOnce) {
  for (const bool file_per_process : {true, false}) {
    IoLayout layout = small_layout();
    layout.file_per_process = file_per_process;
    layout.random = true;
    std::multiset<std::int64_t> places;
    bool sequential = true;
    for (int rank = 0; rank < (file_per_process ? 1 : layout.ranks); ++rank) {
      for (std::int64_t i = 0; i < layout.transfers_per_rank(); ++i) {
        places.insert(layout.offset(rank, i));
        sequential = sequential && (i == 0 || layout.offset(rank, i) > layout.offset(rank, i - 1));
      }
    }
    EXPECT_FALSE(sequential);
    ASSERT_EQ(static_cast<std::int64_t>(places.size()), layout.file_bytes() / 16);
    std::int64_t expected = 0;
    for (const std::int64_t place : places) {
      EXPECT_EQ(place, expected);
      expected += 16;
    }
  }
}

TEST(IoLayout, RefusesSizesThatDoNotFit) {
  IoLayout layout = small_layout();
  layout.transfer_bytes = 24;
  EXPECT_THROW(layout.check(), ConfigError);
  layout.transfer_bytes = 12;
  EXPECT_THROW(layout.check(), ConfigError);
  layout = small_layout();
  layout.segments = std::int64_t{1} << 60;
  EXPECT_THROW(layout.check(), ConfigError);
  EXPECT_NO_THROW(small_layout().check());
}

TEST(IoLayout, ReadersAreNodesAwayFromWriters) {
  EXPECT_EQ(reader_shift(1, 1, 4, 4), 1);   // one node: the next rank
  EXPECT_EQ(reader_shift(1, 3, 4, 12), 4);  // the next node
  EXPECT_EQ(reader_shift(2, 3, 1, 12), 2);  // neighbours are on different nodes
  EXPECT_EQ(reader_shift(1, 1, 1, 1), 0);
}

TEST(IoPattern, FindsWrongBytesAndWrongPlaces) {
  const IoPattern pattern(8192, 7);
  std::vector<char> data(8192);
  pattern.fill(data.data());
  pattern.stamp(data.data(), 16384, 3);
  EXPECT_EQ(pattern.count_wrong(data.data(), 16384, 3), 0);
  EXPECT_TRUE(pattern.has_place(data.data(), 16384, 3));
  EXPECT_FALSE(pattern.has_place(data.data(), 0, 3));
  EXPECT_FALSE(pattern.has_place(data.data(), 16384, 2));
  EXPECT_GE(pattern.count_wrong(data.data(), 24576, 3), 2);  // in both pages
  EXPECT_EQ(pattern.count_wrong(data.data(), 16384, 2), 2);
  data[5000] = static_cast<char>(data[5000] ^ 4);
  EXPECT_EQ(pattern.count_wrong(data.data(), 16384, 3), 1);
}

TEST(IoPattern, WorksForTheSmallestTransfer) {
  const IoPattern pattern(8, 7);
  std::vector<char> data(8);
  pattern.fill(data.data());
  pattern.stamp(data.data(), 24, 3);
  EXPECT_TRUE(pattern.has_place(data.data(), 24, 3));
  EXPECT_FALSE(pattern.has_place(data.data(), 16, 3));
  EXPECT_EQ(pattern.count_wrong(data.data(), 24, 3), 0);
}

class Engines : public ::testing::TestWithParam<IoApi> {};

TEST_P(Engines, ReadBackWhatTheyWrote) {
  const TempFolder folder;
  std::unique_ptr<IoEngine> engine;
  try {
    engine = make_io_engine(GetParam(), 3);
  } catch (const PolicyError& refused) {
    GTEST_SKIP() << refused.what();
  }
  const PageBuffer memory(3 * 4096);
  char* const data = reinterpret_cast<char*>(memory.data());
  const IoPattern pattern(4096, 1);
  const IoOpening opening{folder.path() / "file", true, false, 7 * 4096};
  engine->open(opening);
  for (int i = 0; i < 7; ++i) {
    pattern.fill(data);
    pattern.stamp(data, i * 4096, 9);
    engine->submit(0, {i * 4096, data, 4096});
    EXPECT_EQ(engine->complete(), 0);
  }
  engine->sync();
  engine->close();
  evict_from_cache(opening.path);
  engine->open({opening.path, false, false, opening.bytes});
  for (int first = 0; first < 6; first += engine->depth()) {
    for (int slot = 0; slot < engine->depth(); ++slot) {
      engine->submit(slot, {(first + slot) * 4096, data + slot * 4096, 4096});
    }
    std::set<int> done;
    for (int slot = 0; slot < engine->depth(); ++slot) {
      done.insert(engine->complete());
    }
    EXPECT_EQ(static_cast<int>(done.size()), engine->depth());
    for (int slot = 0; slot < engine->depth(); ++slot) {
      EXPECT_EQ(pattern.count_wrong(data + slot * 4096, (first + slot) * 4096, 9), 0);
    }
  }
  engine->close();
}

INSTANTIATE_TEST_SUITE_P(Io, Engines, ::testing::Values(IoApi::posix, IoApi::uring, IoApi::hdf5));

TEST(IoEngine, ReportsAFileThatEndsTooEarly) {
  const TempFolder folder;
  write_file_durably(folder.path() / "short", "12345");
  for (const IoApi api : {IoApi::posix, IoApi::uring}) {
    std::unique_ptr<IoEngine> engine;
    try {
      engine = make_io_engine(api, 1);
    } catch (const PolicyError&) {
      continue;
    }
    char data[16];
    engine->open({folder.path() / "short", false, false, 16});
    const auto read = [&] {
      engine->submit(0, {0, data, 16});
      (void)engine->complete();
    };
    EXPECT_THROW(read(), IoError);
  }
}

// The expected lines are those of IOR 4.1.0+dev, run with -F -b 8m -t 1m -C -e on two ranks.
IorSetup setup_of_ior() {
  IorSetup setup;
  setup.layout.block_bytes = 8 << 20;
  setup.layout.transfer_bytes = 1 << 20;
  setup.layout.ranks = 2;
  setup.layout.file_per_process = true;
  setup.api = "POSIX";
  setup.ranks_per_node = 2;
  setup.shift = 1;
  return setup;
}

TEST(IorTable, RowsHaveTheColumnsOfIor) {
  EXPECT_EQ(ior_row(setup_of_ior(), {.writes = true,
                                     .repetition = 0,
                                     .bytes = 16 << 20,
                                     .latency = 0.001877,
                                     .open = 0.000069,
                                     .transfer = 16 / 1063.68,
                                     .close = 0.003945,
                                     .total = 16 / 1060.10}),
            "write     1060.10    1063.68    0.001877    8192       1024.00    0.000069   0.015042 "
            "  0.003945   0.015093   0   \n");
  EXPECT_EQ(ior_row(setup_of_ior(), {.writes = false,
                                     .repetition = 1,
                                     .bytes = 16 << 20,
                                     .latency = 0.000109,
                                     .open = 0.000097,
                                     .transfer = 16.0 / 17059,
                                     .close = 0.000072,
                                     .total = 16.0 / 16913}),
            "read      16913      17059      0.000109    8192       1024.00    0.000097   0.000938 "
            "  0.000072   0.000946   1   \n");
  EXPECT_EQ(ior_header(),
            "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    "
            "wr/rd(s)   close(s)   total(s)   iter\n"
            "------    ---------  ----       ----------  ---------- ---------  --------   "
            "--------   --------   --------   ----\n");
}

TEST(IorTable, OptionsSayWhatEndsTheRepetitions) {
  IorSetup setup = setup_of_ior();
  setup.repetitions = 3;
  EXPECT_NE(ior_options(setup).find("repetitions         : 3\n"), std::string::npos);
  setup.seconds = 2.5;
  EXPECT_NE(ior_options(setup).find("repetitions         : as many as fit in 2.5 s\n"),
            std::string::npos);
}

TEST(IorTable, TheSummaryHasTheColumnsOfIor) {
  const std::vector<IorPhase> phases = {
      {.writes = true, .bytes = 16 << 20, .transfer = 0.015, .total = 16 / 1060.10},
      {.writes = true, .bytes = 16 << 20, .transfer = 0.011, .total = 16 / 1346.00}};
  const std::string text = ior_summary(setup_of_ior(), phases);
  EXPECT_THAT(text, HasSubstr("Max Write: 1346.00 MiB/sec (1411.38 MB/sec)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs) "
          "    StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord "
          "reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n"
          "write        1346.00    1060.10    1203.05     142.95    1346.00    1060.10    1203.05 "
          "    142.95    0.01349         NA            NA     0      2   2    2   1     1        1 "
          "        0    0      1  8388608  1048576      16.0 POSIX      0\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("Max Read")));
}

TEST(IorTable, CsvHasTheHeaderOfIor) {
  EXPECT_EQ(ior_csv(setup_of_ior(), {{.writes = true,
                                      .bytes = 16 << 20,
                                      .latency = 0.0002,
                                      .open = 0.0031,
                                      .transfer = 0.005,
                                      .close = 0.0027,
                                      .total = 0.01}}),
            "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),"
            "numTasks,iter\n"
            "write,1600.0000,3200.0000,0.0002,8192.0000,1024.0000,0.0031,0.0050,0.0027,0.0100,2,"
            "0\n");
}

// The expected lines are those of mdtest 4.1.0+dev.
TEST(MdtestTable, HasTheColumnsOfMdtest) {
  EXPECT_EQ(mdtest_summary({{"File creation", {56111.090, 25906.757}}}),
            "\nSUMMARY rate (in ops/sec): (of 2 iterations)\n"
            "   Operation                     Max            Min           Mean        Std Dev\n"
            "   ---------                     ---            ---           ----        -------\n"
            "   File creation           56111.090      25906.757      41008.923      21357.689\n");
}

}  // namespace
}  // namespace trireme
