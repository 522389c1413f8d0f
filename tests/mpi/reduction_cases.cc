#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

// These sizes are around the limits of the algorithms: no element, fewer elements than ranks, small
// and halved messages, one segment and more. Few are a multiple of the number of ranks.
const std::vector<std::int64_t> kCounts = {0, 1, 3, 7, 1000, 4096, 4097, 262145, 600011};

// Defines the sum of one element: the halving tree over the ranks lo..hi-1.
template <class Leaf>
auto tree_sum(int lo, int hi, const Leaf& leaf) -> decltype(leaf(0)) {
  if (hi - lo == 1) {
    return leaf(lo);
  }
  const int mid = (lo + hi) / 2;
  return tree_sum(lo, mid, leaf) + tree_sum(mid, hi, leaf);
}

// Returns number i of rank r as type T. Integers are small enough not to overflow.
template <class T>
T sample_as(int rank, std::int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::lround(sample(rank, i)));
  } else {
    return static_cast<T>(sample(rank, i));
  }
}

// Returns make(key), which is called once per process and key: the ranks of a test are often
// threads, and many cases need the same numbers.
template <class T, class Key, class Make>
const std::vector<T>& made_once(const Key& key, const Make& make) {
  static std::mutex mutex;
  static std::map<Key, std::vector<T>> made;
  const std::lock_guard lock(mutex);
  const auto found = made.find(key);
  return found != made.end() ? found->second : made.emplace(key, make()).first->second;
}

template <class T>
std::vector<T> samples(int rank, std::int64_t count) {
  return made_once<T>(std::pair(rank, count), [&] {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      values[static_cast<std::size_t>(i)] = sample_as<T>(rank, i);
    }
    return values;
  });
}

// Returns the sums of elements first..first+count-1.
template <class T>
const std::vector<T>& expected_sums(int size, std::int64_t first, std::int64_t count) {
  return made_once<T>(std::tuple(size, first, count), [&] {
    std::vector<T> sums(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      sums[static_cast<std::size_t>(i)] =
          tree_sum(0, size, [&](int rank) { return sample_as<T>(rank, first + i); });
    }
    return sums;
  });
}

// Returns how many elements of a, from `first` on, differ in their bits from b's.
template <class T>
std::int64_t differences(const std::vector<T>& a, const std::vector<T>& b, std::size_t first = 0) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    count += std::memcmp(&a[first + i], &b[i], sizeof(T)) != 0 ? 1 : 0;
  }
  return count;
}

template <class T>
void sums_in_tree_order(Communicator& comm) {
  for (const std::int64_t count : kCounts) {
    std::vector<T> values = samples<T>(comm.rank(), count);
    comm.all_reduce(view_of(values), ReduceOp::sum).wait();
    EXPECT_EQ(differences(values, expected_sums<T>(comm.size(), 0, count)), 0)
        << count << " elements";
  }
}

// The source stays unchanged, and empty buffers are allowed.
template <class T>
void sums_out_of_place(Communicator& comm) {
  for (const std::int64_t count : kCounts) {
    std::vector<T> values = samples<T>(comm.rank(), count);
    std::vector<T> sums(values.size(), T{77});
    comm.all_reduce(view_of(values), view_of(sums), ReduceOp::sum).wait();
    EXPECT_EQ(differences(sums, expected_sums<T>(comm.size(), 0, count)), 0) << count;
    EXPECT_EQ(differences(values, samples<T>(comm.rank(), count)), 0) << count << ": the source";
  }
}

void buffers_that_overlap_are_refused(Communicator& comm) {
  std::vector<float> values(200000);
  const View all = view_of(values);
  if (comm.size() > 1) {
    EXPECT_THROW(
        (void)comm.all_reduce(all.slice(0, 150000), all.slice(50000, 150000), ReduceOp::sum),
        InternalError);
  }
}

// Each element is summed in f32 and rounded once.
const std::vector<bf16>& expected_bf16(int size, std::int64_t first, std::int64_t count) {
  return made_once<bf16>(std::tuple(size, first, count), [&] {
    std::vector<bf16> sums(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      sums[static_cast<std::size_t>(i)] = to_bf16(tree_sum(0, size, [&](int rank) {
        return to_float(to_bf16(static_cast<float>(sample(rank, first + i))));
      }));
    }
    return sums;
  });
}

std::vector<bf16> bf16_samples(int rank, std::int64_t count) {
  return made_once<bf16>(std::pair(rank, count), [&] {
    std::vector<bf16> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      values[static_cast<std::size_t>(i)] = to_bf16(static_cast<float>(sample(rank, i)));
    }
    return values;
  });
}

void bf16_is_summed_in_f32(Communicator& comm) {
  for (const std::int64_t count : kCounts) {
    std::vector<bf16> values = bf16_samples(comm.rank(), count);
    const std::vector<bf16> own = values;
    comm.all_reduce(view_of(values), ReduceOp::sum).wait();
    const auto expected = comm.size() == 1 ? own : expected_bf16(comm.size(), 0, count);
    EXPECT_EQ(differences(values, expected), 0) << count << " elements";
  }
}

template <class T>
void extremes(Communicator& comm) {
  constexpr std::int64_t kCount = 5003;
  std::vector<T> largest = samples<T>(comm.rank(), kCount);
  std::vector<T> smallest = largest;
  comm.all_reduce(view_of(largest), ReduceOp::max).wait();
  comm.all_reduce(view_of(smallest), ReduceOp::min).wait();
  for (std::int64_t i = 0; i < kCount; ++i) {
    T most = sample_as<T>(0, i);
    T least = most;
    for (int rank = 1; rank < comm.size(); ++rank) {
      most = std::max(most, sample_as<T>(rank, i));
      least = std::min(least, sample_as<T>(rank, i));
    }
    ASSERT_EQ(largest[static_cast<std::size_t>(i)], most) << "element " << i;
    ASSERT_EQ(smallest[static_cast<std::size_t>(i)], least) << "element " << i;
  }
}

// One rank's NaN reaches every rank, whatever the others hold and wherever it stands in the tree.
void nan_is_kept(Communicator& comm) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    for (int rank = 0; rank < comm.size(); ++rank) {
      const bool mine = rank == comm.rank();
      const double value = mine ? std::numeric_limits<double>::quiet_NaN() : 1.0;
      EXPECT_TRUE(std::isnan(all_reduce_value(comm, value, op))) << "from rank " << rank;
    }
  }
}

void integers_wrap_around(Communicator& comm) {
  std::vector<std::int32_t> values = {std::numeric_limits<std::int32_t>::max()};
  comm.all_reduce(view_of(values), ReduceOp::sum).wait();
  const auto sum = static_cast<std::uint32_t>(comm.size()) * 0x7FFFFFFFU;
  EXPECT_EQ(static_cast<std::uint32_t>(values[0]), sum);
}

void reduce_scatter_gives_own_block(Communicator& comm) {
  for (const std::int64_t block : {0, 1, 5, 1001, 300007}) {
    const std::int64_t own = block * comm.rank();
    std::vector<float> values = samples<float>(comm.rank(), block * comm.size());
    comm.reduce_scatter(view_of(values), ReduceOp::sum).wait();
    const auto& expected = expected_sums<float>(comm.size(), own, block);
    EXPECT_EQ(differences(values, expected, static_cast<std::size_t>(own)), 0) << block;
  }
}

// The largest block is widened in several pieces.
void reduce_scatter_of_bf16(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  for (const std::int64_t block : {0, 1, 1001, 600011}) {
    const std::int64_t own = block * comm.rank();
    std::vector<bf16> values = bf16_samples(comm.rank(), block * comm.size());
    comm.reduce_scatter(view_of(values), ReduceOp::sum).wait();
    const auto& expected = expected_bf16(comm.size(), own, block);
    EXPECT_EQ(differences(values, expected, static_cast<std::size_t>(own)), 0) << block;
  }
}

void values(Communicator& comm) {
  const int n = comm.size();
  EXPECT_EQ(all_reduce_value(comm, std::int64_t{comm.rank()}, ReduceOp::max), n - 1);
  EXPECT_EQ(all_reduce_value(comm, std::int64_t{1} << 40, ReduceOp::sum),
            n * (std::int64_t{1} << 40));
  EXPECT_EQ(all_reduce_value(comm, comm.rank() + 0.5, ReduceOp::min), 0.5);
}

// Sums of whole numbers are the same in every order, and every rank ends with the same bits.
void sums_in_any_order(Communicator& comm) {
  const auto group = comm.split(0, 0);
  group->set_sum_order(SumOrder::any);
  const auto ranks = static_cast<std::int64_t>(comm.size());
  for (const std::int64_t count : {std::int64_t{1}, ranks * 999, std::int64_t{70001}}) {
    std::vector<double> data;
    for (std::int64_t i = 0; i < count; ++i) {
      data.push_back(static_cast<double>(i * (comm.rank() + 1)));
    }
    std::vector<double> blocks = data;
    group->all_reduce(view_of(data), ReduceOp::sum).wait();
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(data[static_cast<std::size_t>(i)], static_cast<double>(i * ranks * (ranks + 1) / 2))
          << i << " of " << count;
    }
    if (count % ranks == 0) {
      group->reduce_scatter(view_of(blocks), ReduceOp::sum).wait();
      const auto first = static_cast<std::ptrdiff_t>(comm.rank() * (count / ranks));
      EXPECT_TRUE(std::equal(data.begin() + first, data.begin() + first + count / ranks,
                             blocks.begin() + first));
    }
  }
}

}  // namespace

std::vector<CollectiveCase> reduction_cases() {
  return {{"sum_f32", sums_in_tree_order<float>},
          {"sum_f64", sums_in_tree_order<double>},
          {"sum_i32", sums_in_tree_order<std::int32_t>},
          {"sum_i64", sums_in_tree_order<std::int64_t>},
          {"sum_out_of_place_f32", sums_out_of_place<float>},
          {"sum_out_of_place_i64", sums_out_of_place<std::int64_t>},
          {"overlap_is_refused", buffers_that_overlap_are_refused},
          {"sum_bf16", bf16_is_summed_in_f32},
          {"extremes_f32", extremes<float>},
          {"extremes_i64", extremes<std::int64_t>},
          {"sums_in_any_order", sums_in_any_order},
          {"nan_is_kept", nan_is_kept},
          {"integers_wrap_around", integers_wrap_around},
          {"reduce_scatter_f32", reduce_scatter_gives_own_block},
          {"reduce_scatter_bf16", reduce_scatter_of_bf16},
          {"values", values}};
}

}  // namespace trireme
