// A rank that is killed or stopped in the middle of each operation: the others say its name, in
// time, and nothing of the memory is left.
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/device/pool.h"
#include "tests/mpi/collective_cases.h"
#include "tests/mpi/shm/process_world.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr std::int64_t kCount = 3 * 400000;

struct Work {
  const char* name;
  bool in_arena;
  void (*run)(Communicator& comm, const View& data, const View& more);
};

const Work kWorks[] = {
    {"all_reduce_in_place", true,
     [](Communicator& comm, const View& data, const View&) {
       comm.all_reduce(data, ReduceOp::max).wait();
     }},
    {"all_reduce_staged", false,
     [](Communicator& comm, const View& data, const View&) {
       comm.all_reduce(data, ReduceOp::max).wait();
     }},
    {"all_reduce_small", false,
     [](Communicator& comm, const View& data, const View&) {
       comm.all_reduce(data.slice(0, 100), ReduceOp::max).wait();
     }},
    {"reduce_scatter", false,
     [](Communicator& comm, const View& data, const View&) {
       comm.reduce_scatter(data, ReduceOp::max).wait();
     }},
    {"all_gather", true,
     [](Communicator& comm, const View& data, const View&) { comm.all_gather(data).wait(); }},
    {"all_to_all", false,
     [](Communicator& comm, const View& data, const View& more) {
       const std::vector<std::int64_t> counts(kRanks, kCount / kRanks);
       comm.all_to_all(data, counts, more, counts).wait();
     }},
    {"broadcast", false,
     [](Communicator& comm, const View& data, const View&) { comm.broadcast(data, 0).wait(); }},
    {"barrier", false, [](Communicator& comm, const View&, const View&) { comm.barrier().wait(); }},
    {"ring", false,
     [](Communicator& comm, const View& data, const View& more) {
       Pending sent = comm.send(data, (comm.rank() + 1) % kRanks, 0);
       comm.recv(more, (comm.rank() + kRanks - 1) % kRanks, 0).wait();
       sent.wait();
     }},
};

std::ostream& operator<<(std::ostream& out, const Work& work) { return out << work.name; }

class DeadRanks : public testing::TestWithParam<Work> {
 protected:
  // Without end.
  static void work(Communicator& comm, double deadline_seconds) {
    comm.set_deadline(std::chrono::duration<double>(deadline_seconds));
    Pool pool(Device{}, GetParam().in_arena ? comm.memory() : host_memory());
    const Buffer data = pool.allocate(kCount * 4);
    const Buffer more = pool.allocate(kCount * 4);
    std::fill_n(static_cast<float*>(data.data()), kCount, 1.0F);
    while (true) {
      GetParam().run(comm, data.view(DType::f32), more.view(DType::f32));
    }
  }
  static void let_them_work() { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }
};

bool anything_left() {
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find("trireme") != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST_P(DeadRanks, KilledIsNamed) {
  ProcessWorld world(kRanks, [](Communicator& comm) { work(comm, 60); });
  let_them_work();
  world.signal(kVictim, SIGKILL);
  for (const int survivor : {0, 2}) {
    EXPECT_THAT(world.report(survivor, 20), HasSubstr("rank 1 (host node) is dead")) << survivor;
  }
  EXPECT_FALSE(anything_left());
}

TEST_P(DeadRanks, StoppedIsNamedAtTheDeadline) {
  ProcessWorld world(kRanks, [](Communicator& comm) { work(comm, 0.7); });
  let_them_work();
  world.signal(kVictim, SIGSTOP);
  std::string all;
  for (const int survivor : {0, 2}) {
    const std::string text = world.report(survivor, 20);
    EXPECT_THAT(text, HasSubstr("did not finish within 0.7s")) << survivor;
    all += text;
  }
  EXPECT_THAT(all, HasSubstr("rank 1 (host node)"));
}

INSTANTIATE_TEST_SUITE_P(Works, DeadRanks, testing::ValuesIn(kWorks),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trireme
