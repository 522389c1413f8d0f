// Runs the cases for every transport over NCCL, whose ranks are threads with a simulated device
// each.
#include <atomic>
#include <future>
#include <string_view>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/nccl/nccl_world.h"
#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "src/device/sim/machine.h"
#include "tests/mpi/collective_cases.h"
#include "tests/mpi/nccl/host_views.h"

namespace trireme {
namespace {

using namespace std::chrono_literals;

Device device_of(const Communicator& comm) { return {DeviceKind::cuda, comm.rank()}; }

std::unique_ptr<Communicator> connect(Communicator& threads, FlightRecorder* recorder = nullptr,
                                      Inquiry* inquiry = nullptr) {
  return make_nccl_world(threads.split(0, threads.rank(), "control"),
                         {.device = device_of(threads), .watch = {recorder, inquiry, 1}});
}

// Leaves out two cases: in one, messages of a lane of tags overtake each other, and in the other,
// operations follow each other on data of the host, which HostViews copies beforehand.
std::vector<CollectiveCase> cases() {
  std::vector<CollectiveCase> all = reduction_cases();
  for (const auto& more : {movement_cases(), group_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  std::erase_if(all, [](const CollectiveCase& each) {
    const std::string_view name = each.name;
    return name == "tags_select" || name == "queued_operations_keep_their_order";
  });
  return all;
}

class OverNccl : public testing::TestWithParam<std::tuple<int, CollectiveCase>> {};

TEST_P(OverNccl, Holds) {
  const auto& [ranks, test] = GetParam();
  ThreadWorld world(ranks);
  world.run([&test = test](Communicator& threads) {
    HostViews comm(connect(threads), device_of(threads));
    test.run(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OverNccl,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::ValuesIn(cases())),
                         [](const auto& each) {
                           return std::get<1>(each.param).name + std::string("_") +
                                  std::to_string(std::get<0>(each.param));
                         });

class DeviceTensor {
 public:
  DeviceTensor(Device device, std::int64_t count)
      : pool_(device, cuda::device_memory(device.index)),
        stream(device, 1, cuda::make_queue(device.index)),
        buffer_(pool_.allocate(count * 4)) {}
  View view() const { return buffer_.view(DType::f32); }

 private:
  Pool pool_;

 public:
  Stream stream;

 private:
  Buffer buffer_;
};

// Without a wait, some of the seeds would let the operation or the second copy go first.
TEST(NcclCommunicator, OrdersOperationsWithStreams) {
  const std::uint64_t before = sim::machine().seed();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    sim::machine().set_seed(seed);
    ThreadWorld world(2);
    world.run([seed](Communicator& threads) {
      const auto comm = connect(threads);
      DeviceTensor x(device_of(threads), 1000);
      std::vector<float> host(1000, static_cast<float>(threads.rank() + 1));
      std::vector<float> result(1000);
      x.stream.clear(x.view());
      x.stream.copy(x.view(), {host.data(), 1000, DType::f32});
      Pending pending = comm->all_reduce(x.view(), ReduceOp::sum, &x.stream);
      pending.wait(x.stream);  // the stream waits, not the host
      x.stream.copy({result.data(), 1000, DType::f32}, x.view());
      x.stream.synchronize();
      EXPECT_EQ(result, std::vector<float>(1000, 3.0F)) << "seed " << seed;
    });
  }
  sim::machine().set_seed(before);
}

// The stream that waits for the operation continues, and its next wait by the host throws.
TEST(NcclCommunicator, NamesARankThatNeverComes) {
  ThreadWorld world(2);
  world.run([&](Communicator& threads) {
    const auto comm = connect(threads, &world.recorder(threads.rank()));
    comm->set_deadline(0.3s);
    if (threads.rank() == 0) {
      DeviceTensor x(device_of(threads), 16);
      x.stream.clear(x.view());
      Pending pending = comm->all_reduce(x.view(), ReduceOp::sum, &x.stream);
      pending.wait(x.stream);
      try {
        x.stream.synchronize();
        ADD_FAILURE() << "the sum of one rank passed for that of two";
      } catch (const Hang& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("all_reduce #1"));
      }
      EXPECT_THROW((void)comm->barrier(), Hang) << "later operations fail alike";
    }
    threads.barrier().wait();
  });
}

// Work that comes before an operation on the stream does not count towards its deadline, be it as
// long as it may. Both ranks wait for the same work, so that they begin the operation together.
TEST(NcclCommunicator, WaitsForItsInputWithoutADeadline) {
  ThreadWorld world(2);
  const std::shared_ptr<StreamQueue> input = make_worker_queue();
  constexpr auto kDeadline = 0.4s;
  input->run([&] { std::this_thread::sleep_for(1.5 * kDeadline); });
  const StreamEvent ready = input->record();
  world.run([&](Communicator& threads) {
    const auto comm = connect(threads);
    comm->set_deadline(kDeadline);
    DeviceTensor x(device_of(threads), 16);
    x.stream.clear(x.view());
    x.stream.wait(ready);
    Pending pending = comm->all_reduce(x.view(), ReduceOp::sum, &x.stream);
    pending.wait(x.stream);
    EXPECT_NO_THROW(x.stream.synchronize());
    threads.barrier().wait();
  });
}

TEST(NcclCommunicator, ABarrierWaitsForAllRanks) {
  ThreadWorld world(2);
  world.run([&](Communicator& threads) {
    const auto comm = connect(threads);
    if (threads.rank() == 0) {
      Pending barrier = comm->barrier();
      DeviceTensor x(device_of(threads), 16);
      x.stream.clear(x.view());
      x.stream.synchronize();  // other work of the device goes on
      EXPECT_FALSE(barrier.done());
      threads.barrier().wait();
      barrier.wait();
    } else {
      threads.barrier().wait();
      comm->barrier().wait();
    }
  });
}

// SlowInquiry is an inquiry that no rank answers.
class SlowInquiry : public Inquiry {
 public:
  std::vector<std::optional<FlightReport>> ask(const FlightQuestion&,
                                               std::chrono::milliseconds) override {
    asked.set_value();
    std::this_thread::sleep_for(300ms);
    is_over = true;
    return std::vector<std::optional<FlightReport>>(2);
  }
  std::promise<void> asked;
  std::atomic<bool> is_over = false;
};

// The thread that asks the other ranks about a hang uses the communicator.
TEST(NcclCommunicator, EndsAfterTheInquiryAboutItsHang) {
  ThreadWorld world(2);
  world.run([&](Communicator& threads) {
    SlowInquiry inquiry;
    auto comm = connect(threads, &world.recorder(threads.rank()), &inquiry);
    comm->set_deadline(0.1s);
    if (threads.rank() == 0) {
      DeviceTensor x(device_of(threads), 16);
      x.stream.clear(x.view());
      Pending pending = comm->all_reduce(x.view(), ReduceOp::sum, &x.stream);
      inquiry.asked.get_future().wait();
      pending.abandon();
      EXPECT_THROW(pending.wait(), CommError);
      comm.reset();
      EXPECT_TRUE(inquiry.is_over);
    }
    threads.barrier().wait();
  });
}

TEST(NcclCommunicator, AbandoningEndsTheGroup) {
  ThreadWorld world(2);
  world.run([](Communicator& threads) {
    const auto comm = connect(threads);
    if (threads.rank() == 0) {
      DeviceTensor x(device_of(threads), 16);
      x.stream.clear(x.view());
      Pending pending = comm->all_reduce(x.view(), ReduceOp::sum, &x.stream);
      pending.abandon();
      EXPECT_THROW(pending.wait(), CommError);
      EXPECT_THROW((void)comm->barrier(), CommError);
    }
    threads.barrier().wait();
  });
}

TEST(NcclCommunicator, RefusesMemoryOfTheHostAndDistantPeers) {
  ThreadWorld world(4);
  world.run([](Communicator& threads) {
    const auto comm = connect(threads);
    std::vector<float> host(4);
    EXPECT_THROW((void)comm->broadcast(view_of(host), 0), InternalError);
    DeviceTensor x(device_of(threads), 4);
    EXPECT_THROW((void)comm->send(x.view(), (threads.rank() + 1) % 4, 0), InternalError)
        << "the group was not prepared";
    comm->prepare_transfers();
    EXPECT_THROW((void)comm->send(x.view(), (threads.rank() + 2) % 4, 0), InternalError);
    threads.barrier().wait();
  });
}

}  // namespace
}  // namespace trireme
