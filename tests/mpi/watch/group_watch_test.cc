#include "mpi/watch/group_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const OperationLabel kOverdue{
    OperationKind::all_reduce, DType::f32, SumOrder::tree, ReduceOp::sum, 0, 4711, 13212058};

// Returns the group of the world's ranks 1, 3 and 5, as seen by rank 1.
GroupMembers members() { return {0, {{1, "n0"}, {3, "n2"}, {5, "n4"}}}; }

FlightReport entered(int rank, std::int64_t number) {
  FlightReport report;
  report.rank = rank;
  report.phase = "data_load";
  report.phase_seconds = 31;
  report.knows_group = true;
  report.entered = number;
  report.finished = number - 1;
  report.last = kOverdue;
  report.last->number = number;
  if (number == kOverdue.number) {
    report.overdue = report.last;
  }
  return report;
}

std::string blame_with(FlightReport three) {
  std::vector<std::optional<FlightReport>> answers(6);
  answers[3] = std::move(three);
  answers[5] = entered(5, 4711);
  return blame(kOverdue, "dp 1,3,5", members(), answers);
}

TEST(Blame, NamesWhoNeverEntered) {
  EXPECT_THAT(
      blame_with(entered(3, 4710)),
      AllOf(HasSubstr("rank 3 (host n2) never entered all_reduce #4711 (12.6 MiB, group dp 1,3,5); "
                      "it has been in data_load for 31s"),
            HasSubstr("the last operation of this group that it entered is all_reduce #4710"),
            Not(HasSubstr("rank 5"))));
  FlightReport stranger = entered(3, -1);
  stranger.knows_group = false;
  EXPECT_THAT(blame_with(stranger), HasSubstr("it has entered no operation of this group"));
  FlightReport gone = entered(3, 4710);
  gone.left_group = true;
  EXPECT_THAT(blame_with(gone), HasSubstr("rank 3 (host n2) has left the group"));
  FlightReport elsewhere = entered(3, 4710);
  elsewhere.waiting = {"recv #3 (1.0 MiB, group pp 0,3, from rank 0) for 31.0s"};
  EXPECT_THAT(blame_with(elsewhere), HasSubstr("waiting in recv #3 (1.0 MiB, group pp 0,3"));
}

TEST(Blame, NamesWhoGivesNoAnswer) {
  std::vector<std::optional<FlightReport>> answers(6);
  answers[5] = entered(5, 4711);
  EXPECT_THAT(blame(kOverdue, "dp 1,3,5", members(), answers),
              AllOf(HasSubstr("rank 3 (host n2) did not answer within 3.0s: it is stopped"),
                    Not(HasSubstr("rank 5"))));
  // No rank could be asked.
  EXPECT_THAT(blame(kOverdue, "dp 1,3,5", members(), {}),
              AllOf(HasSubstr("rank 3"), HasSubstr("rank 5")));
}

TEST(Blame, NamesLostStep) {
  FlightReport report = entered(3, 4712);
  report.overdue =
      OperationLabel{OperationKind::barrier, DType::f32, SumOrder::tree, ReduceOp::sum, 0, 4711, 0};
  EXPECT_THAT(blame_with(report),
              HasSubstr("rank 3 (host n2) is in barrier #4711, not in all_reduce #4711 (12.6 MiB, "
                        "F32, sum): the ranks are out of step"));
  FlightReport late = entered(3, 4711);
  late.finished = 4700;
  EXPECT_THAT(blame_with(late), HasSubstr("behind operations that have not finished"));
}

TEST(Blame, KnowsWhenAllAreThere) {
  EXPECT_EQ(blame_with(entered(3, 4711)),
            "every rank has entered all_reduce #4711 (12.6 MiB, group dp 1,3,5)");
}

// For a send or recv, only the other end matters.
TEST(Blame, AsksTheOtherEnd) {
  OperationLabel label{OperationKind::recv, DType::f32, SumOrder::tree, ReduceOp::sum, 2, 9, 64};
  std::vector<std::optional<FlightReport>> answers(6);
  answers[3] = entered(3, 1);
  answers[5] = entered(5, 1);
  EXPECT_THAT(
      blame(label, "dp 1,3,5", members(), answers),
      AllOf(HasSubstr("rank 5 (host n4) is at the other end; it has been in data_load for 31s"),
            Not(HasSubstr("rank 3"))));
}

TEST(Blame, CountsTheManyItDoesNotName) {
  const auto many = GroupMembers::of_world(0, std::vector<std::string>(100, "h"));
  const std::string text = blame(kOverdue, "world 0..99", many, {});
  EXPECT_THAT(text, AllOf(HasSubstr("rank 1 (host h)"), HasSubstr("and 93 more ranks")));
  EXPECT_LT(text.size(), 2000U);
}

// The id is the same on all ranks, and another one for every split and every color.
TEST(GroupWatch, SplitsHaveNumbers) {
  FlightRecorder a(0, "a");
  FlightRecorder b(1, "b");
  GroupWatch on_a({&a, nullptr, 0}, "world", {0, {{0, "a"}, {1, "b"}}});
  GroupWatch on_b({&b, nullptr, 0}, "world", {1, {{0, "a"}, {1, "b"}}});
  const Watch first = on_a.next_split(1);
  EXPECT_EQ(first.group, on_b.next_split(1).group);
  EXPECT_NE(first.group, 0U);
  const Watch second = on_a.next_split(1);
  EXPECT_NE(second.group, first.group);
  EXPECT_NE(on_b.next_split(2).group, second.group);
}

}  // namespace
}  // namespace trireme
