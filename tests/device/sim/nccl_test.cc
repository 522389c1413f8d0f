// Tests NCCL's stand-in between threads and between processes.
#include <barrier>
#include <functional>
#include <thread>

#include <cuda_fp16.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/device/sim/fault.h"
#include "tests/device/sim/nccl_ranks.h"

namespace trireme {
namespace {

using Body = std::function<void(const Rank&)>;

void on_threads(int ranks, const Body& body) {
  ncclUniqueId id;
  expect_ok(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Rank own = join(id, ranks, rank);
      body(own);
      leave(own);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// The process must not have used the device, because a worker thread does not survive fork().
bool on_processes(int ranks, const Body& body) {
  ncclUniqueId id;
  expect_ok(ncclGetUniqueId(&id));
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      const Rank own = join(id, ranks, rank);
      body(own);
      leave(own);
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  bool all = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    all = all && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return all;
}

// Returns whole numbers, so that sums are exact in any order. Each rank has others.
std::vector<float> numbers_of(int rank, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t at = 0; at < count; ++at) {
    numbers[at] = static_cast<float>(static_cast<int>(at % 100) + rank * 1000);
  }
  return numbers;
}

constexpr std::size_t kCount = 200'003;  // several pieces and a rest

void expect_all_reduce(const Rank& own) {
  DeviceArray<float> data(numbers_of(own.rank, kCount));
  expect_ok(ncclAllReduce(data.data(), data.data(), kCount, ncclFloat32, ncclSum, own.communicator,
                          own.stream));
  expect_success(cudaStreamSynchronize(own.stream));
  const std::vector<float> seen = data.read();
  const int ranks = own.ranks;
  for (std::size_t at = 0; at < kCount; ++at) {
    const int right = static_cast<int>(at % 100) * ranks + 500 * ranks * (ranks - 1);
    ASSERT_EQ(seen[at], static_cast<float>(right)) << at;
  }
}

void expect_reduce_scatter_and_gather(const Rank& own) {
  const auto ranks = static_cast<std::size_t>(own.ranks);
  const auto rank = static_cast<std::size_t>(own.rank);
  DeviceArray<float> data(numbers_of(own.rank, kCount * ranks));
  float* part = data.data() + rank * kCount;
  expect_ok(ncclReduceScatter(data.data(), part, kCount, ncclFloat32, ncclMax, own.communicator,
                              own.stream));
  expect_ok(ncclAllGather(part, data.data(), kCount, ncclFloat32, own.communicator, own.stream));
  expect_success(cudaStreamSynchronize(own.stream));
  const std::vector<float> right = numbers_of(own.ranks - 1, kCount * ranks);
  EXPECT_EQ(data.read(), right);
}

void expect_broadcast(const Rank& own) {
  const int root = own.ranks - 1;
  DeviceArray<float> data(numbers_of(own.rank, kCount));
  expect_ok(ncclBroadcast(own.rank == root ? data.data() : nullptr, data.data(), kCount,
                          ncclFloat32, root, own.communicator, own.stream));
  expect_success(cudaStreamSynchronize(own.stream));
  EXPECT_EQ(data.read(), numbers_of(root, kCount));
}

// Each rank sends to its successor and itself.
void expect_exchange(const Rank& own) {
  DeviceArray<float> sent(numbers_of(own.rank, kCount));
  DeviceArray<float> received(kCount);
  DeviceArray<float> kept(kCount);
  const int next = (own.rank + 1) % own.ranks;
  const int before = (own.rank + own.ranks - 1) % own.ranks;
  expect_ok(ncclGroupStart());
  expect_ok(ncclSend(sent.data(), kCount, ncclFloat32, next, own.communicator, own.stream));
  expect_ok(ncclRecv(received.data(), kCount, ncclFloat32, before, own.communicator, own.stream));
  if (own.ranks > 1) {
    expect_ok(ncclSend(sent.data(), kCount, ncclFloat32, own.rank, own.communicator, own.stream));
    expect_ok(ncclRecv(kept.data(), kCount, ncclFloat32, own.rank, own.communicator, own.stream));
  }
  expect_ok(ncclGroupEnd());
  expect_success(cudaStreamSynchronize(own.stream));
  EXPECT_EQ(received.read(), numbers_of(before, kCount));
  if (own.ranks > 1) {
    EXPECT_EQ(kept.read(), numbers_of(own.rank, kCount));
  }
}

// Splits into even and odd ranks, in descending order.
void expect_split(const Rank& own) {
  ncclComm_t half = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  expect_ok(ncclCommSplit(own.communicator, own.rank % 2, -own.rank, &half, &config));
  int ranks = 0;
  int rank = 0;
  expect_ok(ncclCommCount(half, &ranks));
  expect_ok(ncclCommUserRank(half, &rank));
  EXPECT_EQ(ranks, (own.ranks + 1 - own.rank % 2) / 2);
  EXPECT_EQ(rank, ranks - 1 - own.rank / 2);
  DeviceArray<float> data(std::vector<float>{static_cast<float>(own.rank)});
  expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclMin, half, own.stream));
  expect_success(cudaStreamSynchronize(own.stream));
  EXPECT_EQ(data.read()[0], static_cast<float>(own.rank % 2));
  expect_ok(ncclCommDestroy(half));
  ncclComm_t none = half;
  expect_ok(ncclCommSplit(own.communicator, NCCL_SPLIT_NOCOLOR, 0, &none, nullptr));
  EXPECT_EQ(none, nullptr);
}

void expect_everything(const Rank& own) {
  expect_all_reduce(own);
  expect_reduce_scatter_and_gather(own);
  expect_broadcast(own);
  expect_exchange(own);
  expect_split(own);
}

TEST(SimNcclDeathTest, WorksBetweenProcesses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EXIT(std::exit(on_processes(ranks, expect_everything) ? 7 : 1),
                testing::ExitedWithCode(7), "")
        << ranks;
  }
}

TEST(SimNccl, WorksBetweenThreads) {
  for (const int ranks : {1, 2, 4}) {
    SCOPED_TRACE(ranks);
    on_threads(ranks, expect_everything);
  }
}

TEST(SimNccl, ReducesEveryType) {
  on_threads(2, [](const Rank& own) {
    DeviceArray<__nv_bfloat16> half(std::vector<__nv_bfloat16>{__float2bfloat16_rn(1.5F)});
    DeviceArray<__half> other(std::vector<__half>{__float2half_rn(2.5F)});
    DeviceArray<std::int64_t> count(std::vector<std::int64_t>{own.rank + 3});
    DeviceArray<double> mean(std::vector<double>{own.rank * 1.0});
    expect_ok(ncclAllReduce(half.data(), half.data(), 1, ncclBfloat16, ncclSum, own.communicator,
                            own.stream));
    expect_ok(ncclAllReduce(other.data(), other.data(), 1, ncclFloat16, ncclSum, own.communicator,
                            own.stream));
    expect_ok(ncclAllReduce(count.data(), count.data(), 1, ncclInt64, ncclProd, own.communicator,
                            own.stream));
    expect_ok(ncclAllReduce(mean.data(), mean.data(), 1, ncclFloat64, ncclAvg, own.communicator,
                            own.stream));
    expect_success(cudaStreamSynchronize(own.stream));
    EXPECT_EQ(__bfloat162float(half.read()[0]), 3);
    EXPECT_EQ(__half2float(other.read()[0]), 5);
    EXPECT_EQ(count.read()[0], 12);
    EXPECT_EQ(mean.read()[0], 0.5);
  });
}

TEST(SimNccl, RepeatsTheBitsOfASum) {
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    on_threads(4, [&](const Rank& own) {
      std::vector<float> numbers(100'000);
      for (std::size_t at = 0; at < numbers.size(); ++at) {
        numbers[at] = 1.0F / static_cast<float>(at + 1 + static_cast<std::size_t>(own.rank) * 7);
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        DeviceArray<float> data(numbers);
        expect_ok(ncclAllReduce(data.data(), data.data(), numbers.size(), ncclFloat32, ncclSum,
                                own.communicator, own.stream));
        expect_success(cudaStreamSynchronize(own.stream));
        if (own.rank == 0) {
          first = first.empty() ? data.read() : first;
          EXPECT_EQ(data.read(), first);
        }
      }
    });
  }
}

TEST(SimNccl, OperationsOfACommunicatorKeepTheirOrderAcrossStreams) {
  const SeedScope scope(5);
  on_threads(2, [](const Rank& own) {
    cudaStream_t other = nullptr;
    expect_success(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    DeviceArray<float> first(1);
    DeviceArray<float> second(1);
    for (int round = 0; round < 30; ++round) {
      first.write({1});
      second.write({10});
      for (const auto& [data, stream] :
           {std::pair(&first, own.stream), std::pair(&second, other)}) {
        expect_ok(ncclAllReduce(data->data(), data->data(), 1, ncclFloat32, ncclSum,
                                own.communicator, stream));
      }
      expect_success(cudaStreamSynchronize(own.stream));
      expect_success(cudaStreamSynchronize(other));
      ASSERT_EQ(first.read()[0], 2);
      ASSERT_EQ(second.read()[0], 20);
    }
    expect_success(cudaStreamDestroy(other));
  });
}

TEST(SimNccl, IsCapturedInGraphs) {
  on_threads(2, [](const Rank& own) {
    DeviceArray<float> data(std::vector<float>{1});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    expect_success(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeRelaxed));
    expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, own.communicator,
                            own.stream));
    expect_success(cudaStreamEndCapture(own.stream, &graph));
    expect_success(cudaGraphInstantiate(&executable, graph));
    for (int round = 0; round < 3; ++round) {
      expect_success(cudaGraphLaunch(executable, own.stream));
    }
    expect_success(cudaStreamSynchronize(own.stream));
    EXPECT_EQ(data.read()[0], 8);
    cudaGraphDestroy(graph);
    cudaGraphExecDestroy(executable);
  });
}

TEST(SimNccl, RefusesWrongArguments) {
  on_threads(1, [](const Rank& own) {
    DeviceArray<float> data(4);
    float host[4] = {};
    EXPECT_EQ(ncclSend(data.data(), 4, ncclFloat32, 1, own.communicator, own.stream),
              ncclInvalidArgument);
    EXPECT_EQ(
        ncclAllReduce(host, data.data(), 4, ncclFloat32, ncclSum, own.communicator, own.stream),
        ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 5, ncclFloat32, ncclSum, own.communicator,
                            own.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST(SimNcclDeathTest, DifferentOperationsDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(on_threads(2,
                          [](const Rank& own) {
                            DeviceArray<float> data(8);
                            ncclAllReduce(data.data(), data.data(), own.rank == 0 ? 8 : 4,
                                          ncclFloat32, ncclSum, own.communicator, own.stream);
                            cudaStreamSynchronize(own.stream);
                          }),
               "ranks . and . are in different operations, or with different sizes");
}

TEST(SimNccl, AnInjectedErrorReachesAllRanks) {
  sim::set_faults("1:0:error");
  ncclUniqueId id;
  expect_ok(ncclGetUniqueId(&id));
  std::barrier all_joined(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Rank own = join(id, 2, rank);
      all_joined.arrive_and_wait();
      DeviceArray<float> data(std::vector<float>{1});
      expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, own.communicator,
                              own.stream));
      ncclResult_t error = ncclSuccess;
      while (error == ncclSuccess) {
        expect_ok(ncclCommGetAsyncError(own.communicator, &error));
      }
      EXPECT_EQ(error, ncclRemoteError);
      expect_ok(ncclCommAbort(own.communicator));
      expect_success(cudaStreamSynchronize(own.stream));
      expect_success(cudaStreamDestroy(own.stream));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  sim::set_faults("");
}

}  // namespace
}  // namespace trireme
