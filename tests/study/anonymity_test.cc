#include "src/study/anonymity.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Anonymity, ReplacesWholeNames) {
  Anonymity anonymity;
  anonymity.add_host("n1.cluster.site.org");
  anonymity.add_host("n12");
  anonymity.add_user("jane");
  EXPECT_EQ(anonymity.apply("n1 and n12, not n123; n1.cluster.site.org:22 /users/jane/n1-r01"),
            "host-1 and host-2, not n123; host-1.domain-1:22 /users/user-1/host-1-r01");
  EXPECT_EQ(anonymity.apply("start on n[1-3,12]"), "start on host-1,host-3,host-4,host-2");
  EXPECT_EQ(anonymity.apply("n[1-3"), "hosts[1-3");
}

TEST(Anonymity, LearnsFromTexts) {
  Anonymity anonymity;
  anonymity.learn(R"({"time":1,"host":"gpu07","nodes":["a1", "a2"],"user":"joe"})"
                  "\nrun.dir: /users/mary/runs\n"
                  R"("host": {
    "name": "login1", "kernel": "6.1"})");
  EXPECT_EQ(anonymity.names(), 6U);
  EXPECT_EQ(anonymity.apply("gpu07 a1 a2 joe mary login1 kernel").find("gpu"), std::string::npos);
  EXPECT_EQ(anonymity.apply("joe mary"), "user-1 user-2");
}

// Each text names jane, or the host bad7.
TEST(Anonymity, WithstandsAttacks) {
  for (const char* text : {"SLURMD_NODENAME=bad7\n",
                           "SLURM_JOB_NODELIST=bad[6-7]\nbad7",
                           "SLURM_SUBMIT_HOST=bad7",
                           "HOSTNAME=bad7",
                           "USER=jane",
                           "SLURM_JOB_USER=jane",
                           "SLURM_JOB_ACCOUNT=jane",
                           "srun: error: bad7: task 3: Killed",
                           "slurmstepd-bad7: error: *** STEP 1.0 ON bad7 CANCELLED ***",
                           "ssh jane@bad7 hostname",
                           "mpirun -H a1,bad7 x",
                           "mpirun --host bad7:2 x",
                           "srun -w bad[7-8] x\nbad7",
                           "srun --nodelist=bad7 x",
                           "trireme: rank 0 on bad7: out of memory",
                           "rank 3 (bad7): cannot open",
                           "nodes: bad[1-9]\n# bad7",
                           "host: bad7\n",
                           "launch: {hosts: [a1, bad7]}",
                           "hosts:\t['bad7']",
                           R"({"suspect":"a1","partner":"bad7"})",
                           R"("{\"host\":\"bad7\"}")",
                           R"("nodes_with_bad_links":["bad7"])",
                           R"({"host":"a1.site.org"} bad7.site.org and bad7)"}) {
    Anonymity anonymity;
    anonymity.learn(text);
    anonymity.learn(text);
    const std::string result = anonymity.apply(text);
    EXPECT_EQ(result.find("bad7"), std::string::npos) << text << "\n" << result;
    EXPECT_EQ(result.find("jane"), std::string::npos) << text << "\n" << result;
  }
}

TEST(Anonymity, ListsDomainsAndLoginsUseTheNamesOfTheirHosts) {
  constexpr const char* kText =
      "SLURM_JOB_NODELIST=node[01-04]\nnode01.hpc.example.org NODE02 node03.log\n"
      "ssh -v admin@node04.hpc.example.org www.example.org Node01.HPC.example.org:22.\n"
      "by joe@other.org on Node[03-04].hpc.example.org, admin\n";
  Anonymity anonymity;
  anonymity.learn(kText);
  anonymity.learn(kText);
  EXPECT_EQ(anonymity.apply(kText),
            "SLURM_JOB_NODELIST=host-1,host-2,host-3,host-4\nhost-1.domain-1 host-2 host-3.log\n"
            "ssh -v user-1@host-4.domain-1 host-5.domain-2 host-1.domain-1:22.\n"
            "by mail-1 on host-3.domain-1,host-4.domain-1, user-1\n");
}

TEST(Anonymity, OrdinaryWordsStay) {
  Anonymity anonymity;
  for (const char* text : {"host: connection refused", "nodes: 4\n", "on all nodes: slow",
                           "error: file: missing", "step 3 on 4 ranks", "rank 3 on step 7 of 9"}) {
    anonymity.learn(text);
  }
  EXPECT_EQ(anonymity.apply("connection slow file ranks missing all 4"),
            "connection slow file ranks missing all 4");
}

TEST(Anonymity, ReplacesAddresses) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("10.1.2.3:4000, 127.0.0.1, fe80::1:2:3 02:42:ac:11:00:02 a.b@c.org."),
            "address-1:4000, 127.0.0.1, address-2 address-3 mail-1.");
  EXPECT_EQ(anonymity.apply("at 12:30:05 version 1.2.3 0.1 1.2.3.4.5"),
            "at 12:30:05 version 1.2.3 0.1 1.2.3.4.5");
}

TEST(Anonymity, HostileTexts) {
  Anonymity anonymity;
  for (const char* text : {"", "\"host\":", "\"host\":\"", "\"nodes\":[\"a\",", "\"host\": {", "@",
                           ":::", "....", "\"host\":\"a b\"", "\"host\":\"\x1b[2J\"", "/home/"}) {
    anonymity.learn(text);
    (void)anonymity.apply(text);
  }
  EXPECT_EQ(anonymity.apply(std::string(5000, 'a')), std::string(5000, 'a'));
}

}  // namespace
}  // namespace trireme
