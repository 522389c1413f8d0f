#include "src/study/anonymity/anonymity.h"

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
  for (const char* text :
       {"SLURMD_NODENAME=bad7\n", "SLURM_JOB_NODELIST=bad[6-7]\nbad7", "SLURM_SUBMIT_HOST=bad7",
        "HOSTNAME=bad7", "USER=jane", "SLURM_JOB_USER=jane", "SLURM_JOB_ACCOUNT=jane",
        "srun: error: bad7: task 3: Killed",
        "slurmstepd-bad7: error: *** STEP 1.0 ON bad7 CANCELLED ***", "ssh jane@bad7 hostname",
        "mpirun -H a1,bad7 x", "mpirun --host bad7:2 x", "srun -w bad[7-8] x\nbad7",
        "srun --nodelist=bad7 x", "trireme: rank 0 on bad7: out of memory",
        "rank 3 (bad7): cannot open", "nodes: bad[1-9]\n# bad7", "host: bad7\n",
        "launch: {hosts: [a1, bad7]}", "hosts:\t['bad7']", R"({"suspect":"a1","partner":"bad7"})",
        R"("{\"host\":\"bad7\"}")", R"("nodes_with_bad_links":["bad7"])",
        // Lists of YAML
        "hosts:\n  - a1 # old\n  - bad7\nx: 1\n", "hosts:\n- \"bad7\"\n",
        "nodes: # all\n\n  - bad[6-7]\nx: bad7", "users:\n  - name: jane\n    uid: 5\n",
        "users:\n- {name: jane, uid: 5}\n", "all:\n  hosts:\n    bad7:\n    a1:\n",
        "hosts: {a1: 1}\nuser:\n  name: jane",
        // Columns
        "HOST          STATE\nbad7  idle\n", "x\nhost,state\r\na1,idle\r\nbad7,idle\r\n",
        "user;uid\njane;1000\n", "| id | host |\n|----|------|\n| 5 | bad7 |\n",
        "JOBID     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        "    1    train     jane  R  1-00:00:00      2 bad[7-8]\n bad7",
        "PARTITION AVAIL  NODES  STATE NODELIST\ngpu*         up      2   idle bad[1-7]\nbad7",
        // Names and values
        "host\tbad7\nuser\tjane\n", "uid  5\nuser  jane\n", "node;bad7\nowner;jane",
        "login: jane\n",
        // Messages of Slurm and Open MPI, and what scontrol prints
        "rank 3 on node bad7 failed", "srun: error: bad7: tasks 0-3: Exited with exit code 1",
        "srun: error: Node bad7 has failed", "Node failure on bad7", "Nodes bad[1-7] are ready",
        "UserId=jane(1000)", "MailUser=jane x", "HOSTNAMES NODE_ADDR\nbad7 bad7\n",
        "ReqNodeList=bad7 ExcNodeList=bad7", "NodeAddr=bad7 x", "NodeHostName=bad7",
        "AllocNode:Sid=bad7:1234", "with PID 0 on node bad7",
        "[bad7:12345] *** Process received signal ***", "  Local host:   bad7\n", "srun -wbad7 x",
        R"({"hosts": [{"name": "a1"}, {"name": "bad7"}]})", R"({"nodes": {"a1": 2, "bad7": 3}})",
        "MASTER_ADDR=bad7", "tcp://bad7:29500", "Nov  9 19:42:39 bad7 sshd[5]: refused",
        "user: &u jane\n",
        // Logs
        "ssh: connect to host bad7 port 22: refused", "x bad7:3 failed",
        "uid=1000(jane) gid=5(users)", R"({"host":"a1.site.org"} bad7.site.org and bad7)"}) {
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

// Names may end in any character before a bracket, and have several brackets.
TEST(Anonymity, ReplacesListsOfAllNames) {
  constexpr const char* kPairs[][2] = {
      {"SLURM_JOB_NODELIST=gpu-[1-2] x", "SLURM_JOB_NODELIST=host-1,host-2 x"},
      {"NODELIST=n[1-2],gpu-[1-2]\n", "NODELIST=host-1,host-2,host-3,host-4\n"},
      {"NODELIST=n1,gpu-[3-4]\n", "NODELIST=host-1,host-2,host-3\n"},
      {R"({"nodes":"n[01-02],gpu-[7-8]"})", R"({"nodes":"host-1,host-2,host-3,host-4"})"},
      {"nodelist: n[01],gpu-[9-10]\n", "nodelist: host-1,host-2,host-3\n"},
      {"srun -w n[1-2],gpu-[11-12] x", "srun -w host-1,host-2,host-3,host-4 x"},
      {"HOSTS=gpu_[1,3]", "HOSTS=host-1,host-2"},
      {"HOSTS=gpus.[1-2]", "HOSTS=host-1.1,host-1.2"},
      {"HOSTS=gpu-[1-2].site.org", "HOSTS=host-1.domain-1,host-2.domain-1"},
      {"HOSTS=r10-[1-2]", "HOSTS=host-1,host-2"},
      {"HOSTS=r-[1-2]-n[1]\nNodes:r-[1-2]-n[1].", "HOSTS=host-1,host-2\nNodes:host-1,host-2."},
      {"NODES=gpu--[1]\njane@gpu--[1]: x", "NODES=host-1\nuser-1@host-1: x"},
  };
  for (const auto& [text, expected] : kPairs) {
    Anonymity anonymity;
    anonymity.learn(text);
    anonymity.add_user("jane");
    EXPECT_EQ(anonymity.apply(text), expected);
  }
}

TEST(Anonymity, KnowsHostsInMessagesOfOtherPrograms) {
  for (const char* text :
       {"[n5][[1,1],0][btl_tcp_endpoint.c:626] connect() failed", "[n5:1234 :0:1234] Caught signal",
        "[1795982955.1] [n5:1234 :0] ucp_ep.c:1", "[n5:1234:7] x.c:1 UCX  ERROR x",
        "[1795982955.123456] [n5:12345:0]         ucp_worker.c:1855 UCX  WARN  x",
        "[1795982955.123456] [n5.site.org:12345:0]  ucp_worker.c:1855 x",
        "[n5.site.org:12345:0:12345] Caught signal 11", "n5:2868:2868 [0] NCCL INFO x",
        "2026-11-29T20:00:00.123456+00:00 n5 slurmd[3]: x", "2026-11-29T20:00:00Z n5 kernel: x",
        "Nov 29 20:00:00.123456 n5 slurmd[3]: x", "Nov  9 20:00:00 n5 x"}) {
    Anonymity anonymity;
    anonymity.learn(text);
    EXPECT_EQ(anonymity.apply("n5"), "host-1") << text;
    EXPECT_EQ(anonymity.apply("kernel slurmd x INFO"), "kernel slurmd x INFO") << text;
  }
}

TEST(Anonymity, OrdinaryWordsStay) {
  Anonymity anonymity;
  for (const char* text : {"host: connection refused",
                           "nodes: 4\n",
                           "on all nodes: slow",
                           "error: file: missing",
                           "step 3 on 4 ranks",
                           "rank 3 on step 7 of 9",
                           "host  state\nn1  slow\n",
                           "host,ranks\nn1,4\n",
                           "step,nodes,loss\n1,2,slow\n",
                           "the user left the host\nall ranks left the file\n",
                           "a step:3 failed",
                           "nodes:\n  - 3\nfile:\n  - missing\n",
                           "user, slow and missing\n",
                           "//REDACTED@localhost",
                           "host=REDACTED",
                           "the node is up, rank 3 on node n7 failed: none\n",
                           "host: unknown\n",
                           "host: pinned\n",
                           "curl -H Accept:x",
                           "[main.cc:12345] *** x",
                           "[main.cc:12:3] x [slow:10:2] x\n[missing:1:2:3] UCX",
                           R"({"partner": true, "host": false, "user": null})",
                           "partner: true  # default\nuser: no\n",
                           "rank 3 on cuda:0\n2026-11-29T20:00:00 INFO root: x\n"}) {
    anonymity.learn(text);
  }
  const std::string words =
      "node up none unknown pinned Accept main.cc rank host connection slow file ranks missing all "
      "4 state loss left REDACTED true false null no cuda INFO";
  EXPECT_EQ(anonymity.apply(words), words);
}

TEST(Anonymity, ReplacesAddresses) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("10.1.2.3:4000, 127.0.0.1, fe80::1:2:3 02:42:ac:11:00:02 a.b@c.org."),
            "address-1:4000, 127.0.0.1, address-2 address-3 mail-1.");
  EXPECT_EQ(anonymity.apply("at 12:30:05 version 1.2.3 0.1 1.2.3.4.5"),
            "at 12:30:05 version 1.2.3 0.1 1.2.3.4.5");
}

TEST(Anonymity, ReplacesAddressesBehindAColon) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("[0]eth0:10.0.0.1<0> inet:10.0.0.2:80 inet6:fe80::1 x:a::b"),
            "[0]eth0:address-1<0> inet:address-2:80 inet6:address-3 x:a::b");
  EXPECT_EQ(anonymity.apply("hwaddr:00:11:22:33:44:55 mailto:jane@site.org"),
            "hwaddr:address-4 mailto:mail-1");
}

TEST(Anonymity, ReplacesAddressesInBrackets) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("connected to [10.1.2.4]:29500\npeer [10.1.2.14] is down\n"
                            "peers [10.1.2.24, 10.1.2.25], [10.1.2.24-10.1.2.25]\n"
                            "[192.168.7.9]:2222 ecdsa-sha2-nistp256 AAAA\n[fe80::1]:29500\n"),
            "connected to [address-1]:29500\npeer [address-2] is down\n"
            "peers [address-3, address-4], [address-3-address-4]\n"
            "[address-5]:2222 ecdsa-sha2-nistp256 AAAA\n[address-6]:29500\n");
  EXPECT_EQ(anonymity.apply(R"({"a": [10.1.2.4, 1.5], "b": "[10.1.2.14]"})"),
            R"({"a": [address-1, 1.5], "b": "[address-2]"})");
  constexpr const char* kNumbers =
      "[1700000000.123456] [1.2.3.4.5] [127.0.0.1, 0.0.0.0] [0.25, 1.5e-3, 10.1.2.300] "
      R"(versions: [1.2.3, 4.5] version [1.2.3.4] {"version": [1.2.3.4]} [1.2.3, 4.5.6])";
  EXPECT_EQ(anonymity.apply(kNumbers), kNumbers);
}

TEST(Anonymity, TimesKeysAndNumbersAreNeitherHostsNorAddresses) {
  constexpr const char* kText =
      "Reason=IB down [root@2026-11-29T10:00:00]\n2026-11-29T10:03:01Z step 100\n"
      "Owner=N/A MCS_label=N/A\nssh jane@box.site.org\nbox.train=x train 3.0\n"
      "ReqB:S:C:T=0:2:32:1 walltime 10:20:30:40 x:19000:0:99999:7::: ns::cafe::bad\n"
      "jane.doe+cluster@uni.de";
  Anonymity anonymity;
  anonymity.learn(kText);
  EXPECT_EQ(anonymity.apply(kText),
            "Reason=IB down [root@2026-11-29T10:00:00]\n2026-11-29T10:03:01Z step 100\n"
            "Owner=N/A MCS_label=N/A\nssh user-1@host-1.domain-1\nhost-1.train=x train 3.0\n"
            "ReqB:S:C:T=0:2:32:1 walltime 10:20:30:40 x:19000:0:99999:7::: ns::cafe::bad\n"
            "mail-1");
}

TEST(Anonymity, NeitherVersionsNorNamesOfProgramsAreAddresses) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("a::b ::1 version 10.0.1.2 Driver Version: 535.104.5.1"),
            "a::b ::1 version 10.0.1.2 Driver Version: 535.104.5.1");
  EXPECT_EQ(anonymity.apply("fe80::1 02-42-ac-11-00-02"), "address-1 address-2");
}

TEST(Anonymity, ReplacesAddressesWithinWords) {
  Anonymity anonymity;
  EXPECT_EQ(anonymity.apply("nccl.10.1.2.3.log log_192.168.1.2-3.txt 10.1.2.3@o2ib x=10.1.2.3"),
            "nccl.address-1.log log_address-2-3.txt address-1@o2ib x=address-1");
  constexpr const char* kVersions =
      "nccl-2.18.3.1.tar libx.so.1.2.3.4 a_1.10.2.3.4 v10.1.2.3 10.1.2.3rc1 10.1.2.300 1.2.3.4.5\n";
  EXPECT_EQ(anonymity.apply(kVersions), kVersions);
  anonymity.learn("at 62.1.2.3: refused");
  EXPECT_EQ(anonymity.apply("nccl.62.1.2.3.log"), "nccl.address-3.log");
}

TEST(Anonymity, FiguresOfTheProgramStay) {
  for (const char* text :
       {"ReqTRES=cpu=4,node=3,billing=192 billing", "x[0::2] 0:1:2:3:4:5:6:7 26-11-29-10-00-05",
        "openmpi@4.1.5%gcc@12.2.0 gcc@12", "{\"loss\": 2.5, \"step\": 3}\nuser,loss\nloss,2\n",
        "host,loss\n3,2.5\n", "grep -w slow x\ntar --exclude slow\nls -H slow\nslow",
        "on node 8x, rank 3 (slow), rank 3 on slow\nslow", "host\tslow\nslow",
        "{\"from\": \"slow\"} slow", "model@slow slow", "NODES=[1-2] 1-2",
        "sha256 7786aab7ba0e926462a7c0e9f10f2474b702e92a7d4a6ccbf8e79d566830e96f"}) {
    Anonymity anonymity;
    anonymity.learn(text);
    anonymity.learn(text);
    EXPECT_EQ(anonymity.apply(text), text);
  }
}

TEST(Anonymity, UrlsWithoutTheirLoginsAreNoMailAddresses) {
  constexpr const char* kText = "https://REDACTED@db.site.org:5432/x db.site.org REDACTED@x.org";
  Anonymity anonymity;
  anonymity.learn(kText);
  EXPECT_EQ(anonymity.apply(kText),
            "https://REDACTED@host-1.domain-1:5432/x host-1.domain-1 REDACTED@x.org");
}

// Texts are searched by what they mean. Numbers stay, and so do keys that only hold a name.
TEST(Anonymity, JsonStaysValid) {
  constexpr const char* kText =
      R"({"host": "n7", "m": "failed\nn7 and\tn7 \u00e4", "n7": 7, "per_s": 1e9, "a": [7, "7"]})"
      "\n[n7] user: per";
  Anonymity anonymity;
  anonymity.add_user("per");
  anonymity.learn(kText);
  EXPECT_EQ(anonymity.apply(kText),
            "{\"host\": \"host-1\", \"m\": \"failed\\nhost-1 and\\thost-1 \u00e4\", \"host-1\": 7, "
            "\"per_s\": 1e9, \"a\": [7, \"7\"]}\n[host-1] user: user-1");
  anonymity.learn(R"({"message": "x\nrank 3 on n8: slow"})");
  EXPECT_EQ(anonymity.apply("n8"), "host-2");
}

TEST(Anonymity, PseudonymsAreNoNamesInTheTexts) {
  Anonymity anonymity;
  anonymity.avoid("Host-2 and user-1");
  constexpr const char* kText = "host: n1\nhost-1 is a name\nhost=host-4\nhost=n5 user=jane";
  anonymity.learn(kText);
  EXPECT_EQ(anonymity.apply(kText),
            "host: host-3\nhost-1 is a name\nhost=host-5\nhost=host-6 user=user-2");
}

TEST(Anonymity, TakesLinearTime) {
  for (const char* const part : {"host\t",
                                 "host  a\n",
                                 "host,\"\n",
                                 "hosts:\n",
                                 "- a\n",
                                 "HOST A\n",
                                 "user|",
                                 "n1:3 ",
                                 "a[",
                                 "srun -wn ",
                                 "[n1:1",
                                 "host-",
                                 "{\"a\":",
                                 "[\n",
                                 "10.1.2.3.",
                                 "1.",
                                 "[10.1.2.3,",
                                 "[10.1.2.3]",
                                 "[a:1:1:1",
                                 "-- ",
                                 "HOST STATE\n---- -----\na b c d\n",
                                 "HOST   A B C\n",
                                 "HOST   A  B\na      b c\n"}) {
    std::string many = "hosts:\n";
    while (many.size() < 100'000) {
      many += part;
    }
    Anonymity anonymity;
    anonymity.learn(many);
    EXPECT_FALSE(anonymity.apply(many).empty()) << part;
  }
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
