#include "benchmarks/coll/collective.h"

#include <gtest/gtest.h>

#include "benchmarks/coll/coll.h"

namespace trireme {
namespace {

TEST(Collective, SizesAreCutAsNcclTestsCutsThem) {
  const CollectiveSize whole = cut_size(Collective::all_reduce, 1003, DType::f32, 3);
  EXPECT_EQ(whole.bytes, 1000);
  EXPECT_EQ(whole.count, 250);
  EXPECT_EQ(whole.elements, 250);
  // 250 floats on 3 ranks are 83 each, which is rounded down to a multiple of 16 bytes.
  for (const Collective op :
       {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
    const CollectiveSize blocks = cut_size(op, 1000, DType::f32, 3);
    EXPECT_EQ(blocks.count, 80);
    EXPECT_EQ(blocks.elements, 240);
    EXPECT_EQ(blocks.bytes, 960);
    EXPECT_EQ(cut_size(op, 47, DType::bf16, 3).bytes, 0);
    EXPECT_EQ(cut_size(op, 48, DType::bf16, 3).count, 8);
  }
}

// The factors are those of doc/PERFORMANCE.md of nccl-tests.
TEST(Collective, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 1), 0);
}

TEST(Collective, NamesOfBothKinds) {
  EXPECT_EQ(parse_bench_dtype("float"), parse_bench_dtype("f32"));
  EXPECT_EQ(parse_bench_dtype("bfloat16"), DType::bf16);
  EXPECT_EQ(nccl_name_of(DType::f64), "double");
  EXPECT_THROW(parse_bench_dtype("half"), ConfigError);
  EXPECT_THROW(parse_collective("gather"), ConfigError);
  EXPECT_THROW(parse_reduce_op("prod"), ConfigError);
  for (const std::string& name : collective_names()) {
    EXPECT_EQ(name_of(parse_collective(name)), name);
  }
}

std::vector<std::int64_t> sizes(std::int64_t from, std::int64_t to, std::int64_t step,
                                std::int64_t factor) {
  BenchCollOptions options;
  options.min_bytes = from;
  options.max_bytes = to;
  options.increment = step;
  options.factor = factor;
  return bench_sizes(options);
}

TEST(Collective, SizesStepAsAsked) {
  EXPECT_EQ(sizes(8, 100, 1, 4), (std::vector<std::int64_t>{8, 32}));
  EXPECT_EQ(sizes(0, 20, 10, 1), (std::vector<std::int64_t>{0, 10, 20}));
  EXPECT_EQ(sizes(8, 8, 0, 1), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(sizes(0, 0, 1, 2), (std::vector<std::int64_t>{0}));
  EXPECT_THROW(sizes(9, 8, 1, 1), ConfigError);
  EXPECT_THROW(sizes(0, 8, 1, 2), ConfigError);
  EXPECT_THROW(sizes(0, 8, 0, 1), ConfigError);
  EXPECT_THROW(sizes(0, 1 << 30, 1, 1), ConfigError);
}

TEST(Collective, SizesThatAreCutToTheSameAreMeasuredOnce) {
  BenchCollOptions options;
  options.min_bytes = 8;
  options.max_bytes = 256;
  options.factor = 2;
  const auto cut = [&](Collective op, int ranks) {
    std::vector<std::int64_t> all;
    for (const std::int64_t bytes : distinct_sizes(op, options, ranks)) {
      all.push_back(cut_size(op, bytes, options.dtype, ranks).bytes);
    }
    return all;
  };
  EXPECT_EQ(cut(Collective::all_gather, 4), (std::vector<std::int64_t>{0, 64, 128, 256}));
  EXPECT_EQ(cut(Collective::reduce_scatter, 3), (std::vector<std::int64_t>{0, 48, 96, 240}));
  EXPECT_EQ(cut(Collective::all_reduce, 4), (std::vector<std::int64_t>{8, 16, 32, 64, 128, 256}));
  EXPECT_EQ(cut(Collective::barrier, 4), (std::vector<std::int64_t>{0}));
  options.min_bytes = 1;
  options.max_bytes = 9;
  options.factor = 1;
  options.increment = 1;
  EXPECT_EQ(cut(Collective::broadcast, 2), (std::vector<std::int64_t>{0, 4, 8}));
}

}  // namespace
}  // namespace trireme
