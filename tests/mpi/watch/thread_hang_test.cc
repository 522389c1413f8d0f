// Tests deadlines between ranks that are threads: every rank's message names the culprit, and every
// rank leaves a dump.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/thread/thread_world.h"
#include "tests/mpi/watch/dump_lines.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

std::string message_of_hang(const std::function<void()>& function) {
  try {
    function();
  } catch (const Hang& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class ThreadHang : public testing::Test {
 protected:
  ThreadHang() : folder_(testing::TempDir() + "/thread_hang"), world_(4, {"a", "b", "c", "d"}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (int rank = 0; rank < 4; ++rank) {
      world_.recorder(rank).set_dump_folder(folder_);
    }
  }
  ~ThreadHang() override { std::filesystem::remove_all(folder_); }

  std::vector<nlohmann::json> dump_of(int rank) {
    EXPECT_TRUE(world_.recorder(rank).wait_for_dump(std::chrono::seconds(20)));
    return dump_lines(folder_ / fmt::format("flight-rank-{:05}.jsonl", rank));
  }

  std::filesystem::path folder_;
  ThreadWorld world_;
};

TEST_F(ThreadHang, EveryMessageNamesWhoNeverEntered) {
  std::vector<std::string> texts(3);
  world_.run([&](Communicator& comm) {
    world_.recorder(comm.rank()).enter_phase(comm.rank() == 3 ? "data_load" : "train");
    const auto group = comm.split(0, 0, "dp");
    group->barrier().wait();
    // Only rank 0 reaches its own deadline; the others learn of it from rank 0.
    group->set_deadline(std::chrono::duration<double>(comm.rank() == 0 ? 0.3 : 100));
    if (comm.rank() != 3) {
      std::vector<float> data(70000);
      texts[static_cast<std::size_t>(comm.rank())] = message_of_hang([&] {
        group->all_reduce({data.data(), 70000, DType::f32}, ReduceOp::sum).wait();
      });
    }
    comm.barrier().wait();
  });
  EXPECT_THAT(
      texts,
      Each(AllOf(HasSubstr("rank 3 (host d) never entered all_reduce #1 (273.4 KiB, "
                           "group dp 0..3); it has been in data_load for "),
                 HasSubstr("the last operation of this group that it entered is barrier #0"))));
  EXPECT_THAT(texts[0], HasSubstr("did not finish within 0.3s"));
  EXPECT_THAT(texts[2], HasSubstr("has passed its deadline on rank "));
  for (int rank = 0; rank < 4; ++rank) {
    const auto lines = dump_of(rank);
    EXPECT_EQ(lines.at(0)["rank"], rank);
    EXPECT_THAT(std::string(lines.at(0)["why"]), HasSubstr("all_reduce #1"));
    EXPECT_EQ(lines.at(0)["phase"], rank == 3 ? "data_load" : "train");
    EXPECT_EQ(lines.at(0)["groups"].at(1)["entered"], rank == 3 ? 0 : 1);
  }
}

// Each message names its own group.
TEST_F(ThreadHang, TwoGroupsAtOnce) {
  std::vector<std::string> texts(4);
  world_.run([&](Communicator& comm) {
    const auto pair = comm.split(comm.rank() / 2, 0, comm.rank() < 2 ? "low" : "high");
    pair->set_deadline(std::chrono::duration<double>(0.3));
    if (comm.rank() % 2 == 0) {
      texts[static_cast<std::size_t>(comm.rank())] =
          message_of_hang([&] { pair->barrier().wait(); });
    }
    comm.barrier().wait();
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 1 (host b) never entered barrier #0 (0 B, group low 0,1)"));
  EXPECT_THAT(texts[2],
              HasSubstr("rank 3 (host d) never entered barrier #0 (0 B, group high 2,3)"));
}

// A receive has no send, so the message says what the other end does instead.
TEST_F(ThreadHang, TheOtherEndOfATransfer) {
  std::string text;
  world_.run([&](Communicator& comm) {
    world_.recorder(comm.rank()).enter_phase("evaluate");
    const auto group = comm.split(0, 0, "pp");
    group->set_deadline(std::chrono::duration<double>(0.3));
    if (comm.rank() == 1) {
      std::vector<float> data(4);
      text = message_of_hang([&] { group->recv({data.data(), 4, DType::f32}, 2, 0).wait(); });
    }
    comm.barrier().wait();
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("recv #0 (16 B)"),
                    HasSubstr("rank 2 (host c) is at the other end; it has been in evaluate for "),
                    HasSubstr("still waiting to receive 16 B from rank 2 (host c)")));
}

// A rank that runs another operation is named, although it has entered one of the same number.
TEST_F(ThreadHang, LostStepWithoutAMeeting) {
  std::vector<std::string> texts(3);
  ThreadWorld(3).run([&](Communicator& comm) {
    const auto group = comm.split(0, 0);
    group->set_deadline(std::chrono::duration<double>(0.3));
    std::vector<float> data(4);
    try {
      if (comm.rank() == 1) {
        group->broadcast({data.data(), 4, DType::f32}, 0).wait();
      } else {
        group->barrier().wait();
      }
    } catch (const Error& error) {
      texts[static_cast<std::size_t>(comm.rank())] = error.what();
    }
    comm.barrier().wait();
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("the ranks are out of step"), HasSubstr("barrier #0"),
                                HasSubstr("broadcast #0"))));
}

}  // namespace
}  // namespace trireme
