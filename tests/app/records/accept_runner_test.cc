// What `trireme accept` does not accept as a measurement, and what it keeps as evidence.
#include "src/app/study/accept_runner.h"

#include <gmock/gmock.h>

#include "io/data/file_lock.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/app/records/accepted_machine.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AcceptRunnerTest : public AcceptedMachine {};

TEST_F(AcceptRunnerTest, WhatCannotBeJudgedIsNotAccepted) {
  profile("n[1-2]");
  const CommandRun run = accept();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.out, AllOf(HasSubstr("n1                       not judged\n"),
                             HasSubstr("n1 - n2                  not judged\n"),
                             HasSubstr("# machine NOT JUDGED: 0 of 2 nodes bad, 0 of 1 link bad; "),
                             Not(HasSubstr("vendor"))));
  EXPECT_THAT(run.err, AllOf(HasSubstr("the machine is not judged: 2 nodes not judged, because"),
                             HasSubstr("1 link not judged"), HasSubstr("link.limits")));
  EXPECT_EQ(document()["accepted"], false);
  EXPECT_EQ(document()["verdict"], "not judged");
  EXPECT_THAT(document()["doubt"].get<std::string>(), HasSubstr("2 nodes not judged"));
  EXPECT_EQ(document()["nodes"][0]["good"], false);
  EXPECT_EQ(document()["nodes"][0]["judged"], false);
  EXPECT_TRUE(document()["nodes"][0]["sentence"].is_null());
  profile("n[1-2]", "rounds: 1\n", kLinkLimit, kNodeLimit);
  EXPECT_EQ(accept().code, 0);
}

TEST_F(AcceptRunnerTest, ALimitThatConcernsNothingIsRefused) {
  profile("n[1-4]", "rounds: 2\n", "", "  limits: [memry=50]\n");
  const CommandRun run = accept();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("node.limits: 'memry=50' concerns nothing that was measured. All "
                                 "of its words must occur in a name or in the parameters behind "
                                 "it. There are: 'memory'"));
  EXPECT_FALSE(fs::exists(path("out/n1-r02-0.json"))) << "after the first round";

  profile("n[1-4]", "rounds: 1\n", "  limits: [gbps=50]\n");
  const CommandRun links = accept();
  EXPECT_EQ(links.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(links.err, AllOf(HasSubstr("the machine is not judged: link.limits: 'gbps=50' "),
                               HasSubstr("'gemm time_us' (m=96 precision=fp32)")));
  EXPECT_THAT(links.out, HasSubstr("# machine NOT JUDGED"));
  EXPECT_EQ(document()["nodes"].size(), 4U) << "what was measured is kept";
  EXPECT_EQ(document()["accepted"], false);
}

TEST_F(AcceptRunnerTest, NodesWithoutTheFigureOfALimitAreBadNevertheless) {
  for (const int node : {1, 2, 3, 4}) {
    write(fmt::format("health-n{}", node),
          R"({"complaints": ["not finished within 1 s"], "rates": {}})");
    write(fmt::format("code-n{}", node), "4");
  }
  profile("n[1-4]", "rounds: 1\n", "", kNodeLimit);
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine) << run.err;
  EXPECT_THAT(run.out, HasSubstr("n1                       BAD: not finished within 1 s\n"));
  EXPECT_EQ(document()["verdict"], "rejected");
}

TEST_F(AcceptRunnerTest, WhatEveryNodeRefusesIsNoFaultOfTheNodes) {
  for (const int node : {1, 2, 3, 4}) {
    write(fmt::format("errors-n{}", node), "trireme: wrong\n");
    write(fmt::format("code-n{}", node), "2");
  }
  const CommandRun run = accept();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("every node refused 'health', so that the profile is at fault: "
                                 "exit code 2: trireme: wrong; look at node.measures, "));
  for (const int node : {1, 2, 4}) {
    write(fmt::format("code-n{}", node), "0");
  }
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(document()["nodes"][2]["complaints"].dump(), HasSubstr("exit code 2"));
}

TEST_F(AcceptRunnerTest, WhatEveryLinkRefusesLeavesTheVerdictsOnNodes) {
  make_program("program", "[ \"$1\" = health ] && cat health-$NODE\n");
  make_program("bin/nolink", "exit 2\n");
  std::string text = read_file(path("accept.yaml"));
  text.replace(text.find("[env, \"A="), 5, "[nolink, ");
  write("accept.yaml", text);
  const CommandRun run = accept();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("every link refused 'p2p --test bandwidth', so that the profile"));
  EXPECT_THAT(run.out, Not(HasSubstr("n1 - n2")));
  EXPECT_EQ(document()["nodes"].size(), 4U);
  health(3, 99, {"the fan stands still"});
  EXPECT_EQ(accept().code, kBadMachine);
}

TEST_F(AcceptRunnerTest, AProgramThatNodesLackIsTheFaultOfTheNodes) {
  make_program("bin/nolink", "exit 127\n");
  std::string text = read_file(path("accept.yaml"));
  text.replace(text.find("[env, \"A="), 5, "[nolink, ");
  write("accept.yaml", text);
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(document()["links"][0]["complaints"].dump(), HasSubstr("exit code 127"));
  text.replace(text.find("[nolink, "), 9, "[/nonexistent/launcher, ");
  write("accept.yaml", text);
  EXPECT_EQ(accept().code, kBadMachine) << "its file system may not be mounted";
}

TEST_F(AcceptRunnerTest, FilesOfEarlierCallsDoNotCount) {
  ASSERT_EQ(accept().code, 0);
  make_program("program", "[ \"$1\" = health ] && cat health-$NODE\nexit 0\n");
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine);
  EXPECT_THAT(document()["links"][0]["complaints"][0].get<std::string>(),
              HasSubstr("p2p --test bandwidth has failed: "));
  profile("n[1-4]", "rounds: 1\n", "", "  limits: [memry=50]\n");
  ASSERT_EQ(accept().code, static_cast<int>(ExitCode::usage));
  EXPECT_FALSE(fs::exists(path("out/acceptance.json"))) << "that of the call before";
}

TEST_F(AcceptRunnerTest, WhatCannotBeRemovedIsAComplaint) {
  fs::create_directories(path("out/n1-n2-l03-0.json/full"));
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(link_verdict("n1", "n2")["complaints"].dump(),
              HasSubstr("cannot remove " + path("out/n1-n2-l03-0.json")));
}

TEST_F(AcceptRunnerTest, AnotherBenchmarkAndEmptyResultsAreNoAnswer) {
  json document_of_mem = bench_json({100});
  document_of_mem["command"] = "mem";
  write("link-n1-n2", document_of_mem.dump());
  json empty = bench_json({0, 0});
  empty["command"] = "p2p";
  write("link-n1-n3", empty.dump());
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(link_verdict("n1", "n2")["complaints"].dump(),
              HasSubstr("holds a measurement of bench mem, not of bench p2p"));
  EXPECT_THAT(link_verdict("n1", "n3")["complaints"].dump(),
              HasSubstr("it holds no figure above 0 that can be judged"));
}

TEST_F(AcceptRunnerTest, TwoAtOnceNeedTwoFolders) {
  fs::create_directory(path("out"));
  const std::optional<FileLock> other = FileLock::try_take(path("out/.accept.lock"));
  const CommandRun run = accept();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("another `trireme accept` is at work in "));
  EXPECT_FALSE(fs::exists(path("calls"))) << "nothing was started";
}

TEST_F(AcceptRunnerTest, TheDocumentIsEvidence) {
  profile("n[1-4]", "rounds: 2\n", "", "  at_least: 77\n  limits: [memory=50]\n");
  ASSERT_EQ(accept().code, 0);
  const json found = document();
  EXPECT_EQ(found["verdict"], "accepted");
  EXPECT_TRUE(found["doubt"].is_null());
  EXPECT_GT(found["time"], 1.7e9);
  EXPECT_EQ(found["profile"]["file"], path("accept.yaml"));
  EXPECT_EQ(found["profile"]["sha256"], sha256_hex(read_file(path("accept.yaml"))));
  EXPECT_EQ(found["profile"]["node"]["at_least"], 77);
  EXPECT_EQ(found["profile"]["node"]["limits"], (json{{"memory", 50}}));
  EXPECT_EQ(found["profile"]["link"]["measures"][0], "p2p --test bandwidth");
  const json figure = found["nodes"][1]["figures"][0];
  EXPECT_EQ(figure["name"], "memory");
  EXPECT_EQ(figure["value"], 100.0);
  EXPECT_EQ(figure["typical"], 100.5);
  EXPECT_EQ(figure["unit"], "GB/s");
  EXPECT_EQ(figure["agreed"], (json{{"name", "memory"}, {"value", 50.0}, {"at_least", true}}));
  EXPECT_EQ(found["links"][0]["figures"][0]["details"], "m=96 precision=fp32");
}

TEST_F(AcceptRunnerTest, ABusyMachineIsNoted) {
  json busy = bench_json({103});
  busy["command"] = "p2p";
  busy["waited_fraction"] = 0.92;
  write("link-n1-n2", busy.dump());
  EXPECT_THAT(accept().out, HasSubstr("# note: n1 - n2: p2p --test bandwidth waited for a core 92 "
                                      "% of its time: "));
  EXPECT_EQ(link_verdict("n1", "n2")["notes"].size(), 1U);
}

TEST_F(AcceptRunnerTest, TheProfileIsNotReplaced) {
  const std::string before = read_file(path("accept.yaml"));
  const CommandRun run = accept({"-J", path("bin/../accept.yaml")});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("-J and PROFILE are the same file"));
  EXPECT_EQ(read_file(path("accept.yaml")), before);
  fs::create_directories(path("out"));
  const CommandRun within = accept({"-J", path("out/n1-r01-0.json")});
  EXPECT_EQ(within.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(within.err, HasSubstr("holds what the same command measures"));
}

TEST_F(AcceptRunnerTest, AHostListThatIsWrongIsNamedWithItsOrigin) {
  profile("n[1-");
  EXPECT_THAT(accept().err, HasSubstr(path("accept.yaml") + ": nodes: "));
  profile("");
  variables_.set("SLURM_JOB_NODELIST", "n[1-");
  EXPECT_THAT(accept().err, HasSubstr("SLURM_JOB_NODELIST: "));
}

TEST_F(AcceptRunnerTest, AHugeMachineIsMeasuredInParts) {
  make_program("program",
               "echo + >> now; sleep 2; echo - >> now\n"
               "[ \"$1\" = health ] && cat health-n1\n");
  profile("n[1-300]", "rounds: 1\nlink_rounds: 1\n");
  accept();
  int now = 0;
  int most = 0;
  for (const char each : read_file(path("now"))) {
    now += each == '+' ? 1 : each == '-' ? -1 : 0;
    most = std::max(most, now);
  }
  EXPECT_LE(most, 256);
}

}  // namespace
}  // namespace trireme
