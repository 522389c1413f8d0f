#include "src/policy/caller.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/error.h"
#include "tests/policy/sample_policy.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Caller, HasTheGroupsOfTheKernel) {
  const Policy policy =
      parse_policy(with(sample_policy_text(), "accounts: [custody]", "groups: [daemon]"), "p");
  const Caller caller = this_caller(policy);
  EXPECT_EQ(caller.uid, ::geteuid());
  EXPECT_THAT(caller.groups, Contains(::getegid()));
  EXPECT_TRUE(std::is_sorted(caller.groups.begin(), caller.groups.end()));
  EXPECT_EQ(caller.account, "");
}

TEST(Caller, GetsRolesByGroupAndAccount) {
  const Policy policy = parse_policy(sample_policy_text(), "p");
  Caller caller;
  caller.groups = {0, 12345};
  std::vector<HeldRole> held = roles_of(caller, policy);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].role->name, "trainer");
  EXPECT_EQ(held[0].why, "group root");
  caller.groups = {12345};
  caller.account = "custody";
  caller.job = 42;
  held = roles_of(caller, policy);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].why, "account custody of job 42");
  caller.account = "other";
  EXPECT_TRUE(roles_of(caller, policy).empty());
}

TEST(Caller, RefusesGroupsThatDoNotExist) {
  const Policy policy =
      parse_policy(with(sample_policy_text(), "groups: [root]", "groups: [no-such-group-1]"), "p");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)roles_of({}, policy); }),
              HasSubstr("'no-such-group-1', a group that this host does not have"));
}

TEST(Caller, ReadsTheAnswersOfSlurm) {
  EXPECT_EQ(parse_job_of_pid("Slurm job id 42 ends at Thu Nov 26 23:00:00 2026\n"), 42);
  EXPECT_EQ(parse_job_of_pid("slurm_load_jobs error: Invalid job id\n"), 0);
  EXPECT_EQ(parse_job_of_pid("Slurm job id 42"), 0);  // was cut off
  EXPECT_EQ(parse_job_of_pid("Slurm job id -1 ends"), 0);
  EXPECT_EQ(parse_job_of_pid("Slurm job id 99999999999999999999 ends"), 0);
  EXPECT_EQ(parse_job_account("1000 project1\n", 42, 1000), "project1");
  EXPECT_EQ(parse_job_account("1000 (null)\n", 42, 1000), "");
  EXPECT_EQ(parse_job_account("", 42, 1000), "");
}

TEST(Caller, RefusesTheJobOfAnotherUser) {
  for (const char* const answer : {"1001 project1\n", "10001 project1\n", "root\n", " 1000 a\n"}) {
    EXPECT_THAT(message_of<PolicyError>([&] { (void)parse_job_account(answer, 42, 1000); }),
                HasSubstr("the job 42 of this process belongs to the user"));
  }
}

}  // namespace
}  // namespace trireme
