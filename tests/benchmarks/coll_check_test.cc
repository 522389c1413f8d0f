#include "benchmarks/coll/coll_check.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"

namespace trireme {
namespace {

constexpr std::int64_t kElements = 3 * 4 * 4096;  // longer than the period of the inputs

// Two arrays in the memory of one rank.
struct Arrays {
  explicit Arrays(DType dtype)
      : bytes(static_cast<std::size_t>(2 * kElements * size_of(dtype))),
        from{bytes.data(), kElements, dtype},
        to{bytes.data() + kElements * size_of(dtype), kElements, dtype} {}
  std::vector<char> bytes;
  View from, to;
};

std::vector<CollectiveTask> tasks() {
  std::vector<CollectiveTask> all;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    all.push_back({Collective::all_reduce, op, 0});
    all.push_back({Collective::reduce_scatter, op, 0});
  }
  all.push_back({Collective::all_gather, ReduceOp::sum, 0});
  all.push_back({Collective::all_to_all, ReduceOp::sum, 0});
  all.push_back({Collective::broadcast, ReduceOp::sum, 1});
  return all;
}

// Real results have no wrong element. After one element is changed, exactly one is wrong.
TEST(CollCheck, CountsWhatIsWrong) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    for (const CollectiveTask& task : tasks()) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64}) {
        const CollCheck check(task, dtype, comm.rank(), comm.size());
        const Arrays arrays(dtype);
        const auto ours = make_contestant(comm, task);
        check.fill(arrays.from);
        ours->out_of_place(arrays.from, arrays.to);
        EXPECT_EQ(check.count_wrong(arrays.to), 0)
            << name_of(task.op) << ' ' << nccl_name_of(dtype);
        check.fill(arrays.from);
        ours->in_place(arrays.from, arrays.to);
        EXPECT_EQ(check.count_wrong(arrays.from), 0) << name_of(task.op);
        // Change the last element of this rank's own part.
        const std::int64_t last = (comm.rank() + 1) * (kElements / 3) * size_of(dtype) - 1;
        static_cast<char*>(arrays.from.data)[last] ^= 1;
        EXPECT_EQ(check.count_wrong(arrays.from), 1) << name_of(task.op);
        comm.barrier().wait();
      }
    }
  });
}

// Input that no operation has touched is wrong, and so are parts in the wrong place.
TEST(CollCheck, FindsOperationsThatDidNothing) {
  for (const CollectiveTask& task : tasks()) {
    const CollCheck check(task, DType::f32, 0, 3);
    const Arrays arrays(DType::f32);
    check.fill(arrays.from);
    EXPECT_GT(check.count_wrong(arrays.from), kElements / 10) << name_of(task.op);
  }
  const CollCheck gathered({Collective::all_gather, ReduceOp::sum, 0}, DType::f32, 0, 3);
  const Arrays arrays(DType::f32);
  const std::int64_t block = kElements / 3;
  const ExactInputs inputs(DType::f32, 3);
  for (int r = 0; r < 3; ++r) {
    inputs.fill(arrays.from.slice(((r + 1) % 3) * block, block), r, r * block);
  }
  EXPECT_GT(gathered.count_wrong(arrays.from), kElements / 2);
}

// Sums are exact for any number of ranks, and the inputs are not all equal.
TEST(ExactInputs, SumsAreExactInTheType) {
  for (const int ranks : {1, 2, 7, 255, 256, 300, 5000}) {
    const ExactInputs inputs(DType::bf16, ranks);
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < 50; ++i) {
      std::int64_t sum = 0;
      std::int64_t magnitude = 0;
      for (int r = 0; r < ranks; ++r) {
        sum += inputs.value(r, i);
        magnitude += std::abs(inputs.value(r, i));
      }
      EXPECT_LE(magnitude, 256) << ranks;
      EXPECT_EQ(to_float(to_bf16(static_cast<float>(sum))), static_cast<float>(sum));
      different += inputs.value(0, i) != inputs.value(0, i + 1) ? 1 : 0;
    }
    EXPECT_GT(different, 10) << ranks;
  }
}

}  // namespace
}  // namespace trireme
