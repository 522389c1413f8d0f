#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

using std::chrono::duration;
using testing::AllOf;
using testing::HasSubstr;

template <class ErrorType>
std::string message_of(Pending pending) {
  try {
    pending.wait();
  } catch (const ErrorType& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::hang);
    return error.what();
  }
  return "nothing was thrown";
}

// Returns a group for a fault, so that the given one stays usable.
std::unique_ptr<Communicator> fresh_group(Communicator& comm) { return comm.split(0, 0); }

// The last rank never enters. A rank that waits for it says so in time, and no later operation of
// the group succeeds.
void absent_rank_is_named(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  const auto group = fresh_group(comm);
  const int absent = comm.size() - 1;
  if (comm.rank() == 0) {
    group->set_deadline(duration<double>(0.3));
    std::vector<float> data(70000, 1.0F);
    Pending waiting = group->recv(view_of(data), absent, 5);
    const std::string first = message_of<Hang>(waiting);
    EXPECT_THAT(first, AllOf(HasSubstr("rank 0 (host "), HasSubstr("recv #0 (273.4 KiB)"),
                             HasSubstr("0.3s"),
                             HasSubstr(fmt::format("to receive 273.4 KiB from "
                                                   "rank {} (host {})",
                                                   absent, comm.host(absent)))));
    EXPECT_EQ(message_of<Hang>(waiting), first);
    EXPECT_EQ(message_of<Hang>(group->all_reduce(view_of(data), ReduceOp::sum)), first);
  }
  comm.barrier().wait();
}

void absent_rank_hangs_a_collective(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  const auto group = fresh_group(comm);
  if (comm.rank() != comm.size() - 1) {
    group->set_deadline(duration<double>(0.3));
    std::vector<float> data(70000, 1.0F);
    Pending first = group->all_reduce(view_of(data), ReduceOp::sum);
    Pending second = group->barrier();
    const std::string text = message_of<Hang>(second);
    EXPECT_THAT(text, AllOf(HasSubstr("all_reduce #0 (273.4 KiB)"),
                            HasSubstr(fmt::format("a group of {} ranks", comm.size())),
                            HasSubstr("still waiting ")));
    EXPECT_EQ(message_of<Hang>(first), text);
  }
  comm.barrier().wait();
}

// These deadlines are beyond the range of the clock.
void any_deadline_is_long_enough(Communicator& comm) {
  for (const double seconds : {1e10, 1e18, 1e300, std::numeric_limits<double>::infinity()}) {
    const auto group = fresh_group(comm);
    group->set_deadline(duration<double>(seconds));
    EXPECT_EQ(all_reduce_value(*group, std::int64_t{1}, ReduceOp::sum), comm.size()) << seconds;
    EXPECT_EQ(all_gather_text(*group->split(0, 0), "x").size(),
              static_cast<std::size_t>(comm.size()));
  }
}

// Two ranks that disagree about the length of a message learn it before they use the data.
void wrong_length_is_an_error(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  for (const std::int64_t received : {40, 400}) {
    const auto group = fresh_group(comm);
    group->set_deadline(duration<double>(20));
    std::vector<std::uint8_t> data(400, 1);
    if (comm.rank() == 1) {
      const std::string text =
          message_of<CommError>(group->recv(view_of(data).slice(0, received), 0, 0));
      EXPECT_THAT(text, AllOf(HasSubstr("recv #0"), HasSubstr("rank 1 (host ")));
    } else if (comm.rank() == 0) {
      Pending sent = group->send(view_of(data).slice(0, 200), 1, 0);
      comm.barrier().wait();
      sent.abandon();
      continue;
    }
    comm.barrier().wait();
  }
}

// The operation is given up at once, as on the way out of an error, and not at its deadline of ten
// minutes.
void abandoning_ends_the_group(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  const auto group = fresh_group(comm);
  std::vector<float> data(1000, 1.0F);
  if (comm.rank() == 0) {
    Pending received = group->recv(view_of(data), 1, 0);
    received.abandon();
    EXPECT_TRUE(received.done());
    EXPECT_THAT(message_of<CommError>(received), HasSubstr("stopped communicating"));
    EXPECT_THAT(message_of<CommError>(group->barrier()), HasSubstr("stopped communicating"));
    received.abandon();
  }
  comm.barrier().wait();
}

// The end of a communicator fails its unfinished operations.
void ending_fails_what_is_left(Communicator& comm) {
  if (comm.size() == 1) {
    return;
  }
  auto group = fresh_group(comm);
  std::vector<float> data(1000, 1.0F);
  if (comm.rank() == 0) {
    Pending received = group->recv(view_of(data), 1, 0);
    group.reset();
    EXPECT_THAT(message_of<CommError>(received), HasSubstr("stopped communicating"));
  }
  comm.barrier().wait();
}

void misuse_is_refused(Communicator& comm) {
  std::vector<std::uint16_t> data(8);
  EXPECT_THROW((void)comm.broadcast(view_of(data), comm.size()), InternalError);
  EXPECT_THROW((void)comm.send(view_of(data), comm.rank(), 0), InternalError);
  EXPECT_THROW((void)comm.recv(view_of(data), -1, 0), InternalError);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 1);
  std::vector<float> out(counts.size());
  std::vector<float> in(counts.size());
  EXPECT_THROW((void)comm.all_to_all(view_of(out), counts, view_of(out), counts), InternalError);
  counts.back() = 2;
  EXPECT_THROW((void)comm.all_to_all(view_of(out), counts, view_of(in), counts), InternalError);
  counts.pop_back();
  EXPECT_THROW((void)comm.all_to_all(view_of(out), counts, view_of(in), counts), InternalError);
  if (comm.size() > 1) {
    const std::int64_t uneven = comm.size() + 1;
    std::vector<float> blocks(static_cast<std::size_t>(uneven));
    EXPECT_THROW((void)comm.all_reduce(view_of(data), ReduceOp::sum), InternalError);
    EXPECT_THROW((void)comm.all_gather(view_of(blocks)), InternalError);
    EXPECT_THROW((void)comm.reduce_scatter(view_of(blocks), ReduceOp::sum), InternalError);
    EXPECT_THROW((void)comm.send(view_of(data), 1 - comm.rank() % 2, -1), InternalError);
    // The sum of the counts is right, but one of them is negative.
    std::vector<std::int64_t> negative(in.size(), 0);
    negative.front() = -1;
    negative.back() += comm.size() + 1;
    EXPECT_THROW((void)comm.all_to_all(view_of(out), negative, view_of(in), negative),
                 InternalError);
  }
  comm.barrier().wait();
}

}  // namespace

std::vector<CollectiveCase> fault_cases() {
  return {{"absent_rank_is_named", absent_rank_is_named},
          {"absent_rank_hangs_a_collective", absent_rank_hangs_a_collective},
          {"any_deadline_is_long_enough", any_deadline_is_long_enough},
          {"wrong_length_is_an_error", wrong_length_is_an_error},
          {"abandoning_ends_the_group", abandoning_ends_the_group},
          {"ending_fails_what_is_left", ending_fails_what_is_left},
          {"misuse_is_refused", misuse_is_refused}};
}

}  // namespace trireme
