// `trireme accept` on machines that a script plays. The statistics have tests of their own
// (tests/study/acceptance_test.cc).
#include "src/app/study/accept_command.h"

#include <gmock/gmock.h>

#include "src/base/file.h"
#include "src/train/start/run_place.h"
#include "tests/app/records/accepted_machine.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AcceptCommand : public AcceptedMachine {};

TEST_F(AcceptCommand, AMachineOfEqualNodesIsAccepted) {
  const CommandRun run = accept({"-J", path("named.json")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("n1                       good\n"),
                             HasSubstr("n3 - n4                  good\n"),
                             HasSubstr("# machine ACCEPTED: 0 of 4 nodes bad, 0 of 6 links bad; "),
                             Not(HasSubstr("pairs were measured")), Not(HasSubstr("vendor")),
                             Not(HasSubstr("drain"))));
  EXPECT_THAT(run.err, AllOf(HasSubstr("accept: nodes, round 1, after 0 s\n"),
                             HasSubstr("accept: links, round 3 of 3\n"),
                             Not(HasSubstr("known-good partners"))));
  const json found = document();
  EXPECT_EQ(found["schema"], 1);
  EXPECT_EQ(found["accepted"], true);
  EXPECT_EQ(found["rounds"], 1);
  EXPECT_EQ(found["link_rounds"], 3);
  EXPECT_EQ(found["nodes"].size(), 4U);
  EXPECT_EQ(found["links"].size(), 6U);
  EXPECT_EQ(found["nodes"][0]["good"], true);
  EXPECT_TRUE(found["nodes"][0]["sentence"].is_null());
  EXPECT_TRUE(found["partner_tests"].empty());
  EXPECT_TRUE(found["drain_commands"].empty());
  EXPECT_EQ(read_file(path("named.json")), read_file(path("out/acceptance.json")));
}

TEST_F(AcceptCommand, MeasurementsAreStartedAsTheProfileSays) {
  profile("n[1-2]", "rounds: 2\nat_once: 1\nseconds: 7\n", kLinkLimit, kNodeLimit);
  EXPECT_EQ(accept().code, 0);
  const std::string health = " health --json --seconds 7\n";
  EXPECT_EQ(calls(), "n1" + health + "n2" + health + "n1" + health + "n2" + health +
                         "n1n2 bench p2p --test bandwidth -J " + path("out/n1-n2-l01-0.json") +
                         "\n");
  EXPECT_EQ(read_file(path("out/n2-r02-0.json")), read_file(path("health-n2")));
  EXPECT_TRUE(fs::exists(path("out/n1-r01-0.json")));
  EXPECT_FALSE(fs::exists(path("out/n1-r03-0.json")));
}

TEST_F(AcceptCommand, ASlowNodeIsNamedWithTheCommandThatDrainsIt) {
  profile("n[1-4]", "rounds: 2\n");
  health(3, 25);
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine);
  EXPECT_THAT(
      run.out,
      AllOf(HasSubstr("n3                       BAD: memory at 25 %\n"),
            HasSubstr("# machine REJECTED: 1 of 4 nodes bad, 0 of 6 links bad; "),
            Not(HasSubstr("drain_at_most")),
            HasSubstr("\nFor the vendor:\n- Node n3 reaches 25 % of the typical speed in memory: "
                      "25 GB/s, where the median of all is "),
            HasSubstr("(median of 2 rounds, "),
            HasSubstr("\nTo drain these nodes (or repeat with --drain):\n  scontrol update "
                      "NodeName=n3 State=DRAIN 'Reason=trireme accept: memory at 25 % of the "
                      "median'\n")));
  const json found = document();
  EXPECT_EQ(found["accepted"], false);
  EXPECT_EQ(found["nodes"][2]["good"], false);
  EXPECT_EQ(found["nodes"][2]["findings"][0]["name"], "memory");
  EXPECT_EQ(found["nodes"][2]["findings"][0]["value"], 25.0);
  EXPECT_EQ(found["nodes"][2]["findings"][0]["unit"], "GB/s");
  EXPECT_EQ(found["nodes"][2]["findings"][0]["limit"], false);
  EXPECT_EQ(found["drain_commands"].size(), 1U);
  EXPECT_EQ(found["drain"], (json{{"asked", false}, {"done", false}, {"shared_cause", nullptr}}));
  EXPECT_EQ(accept({"--json"}).code, kBadMachine);
}

TEST_F(AcceptCommand, DrainRunsTheCommands) {
  health(3, 25);
  make_program("bin/scontrol", "printf '%s\\n' \"$@\" >> drained\n");
  const CommandRun run = accept({"--drain"});
  EXPECT_EQ(run.code, kBadMachine);
  EXPECT_THAT(run.out, HasSubstr("\nDrained:\n  scontrol update NodeName=n3 "));
  EXPECT_EQ(read_file(path("drained")),
            "update\nNodeName=n3\nState=DRAIN\n"
            "Reason=trireme accept: memory at 25 % of the median\n");
}

// Three of four nodes are bad: rather the profile is wrong.
TEST_F(AcceptCommand, TooManyBadNodesAreNotDrained) {
  for (const int node : {1, 2, 3}) {
    health(node, 99, {"the fan stands still"});
  }
  make_program("bin/scontrol", "printf '%s\\n' \"$2\" >> drained\n");
  const CommandRun run = accept({"--drain"});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(path("drained")));
  EXPECT_THAT(run.err, AllOf(HasSubstr("no node was drained: 3 of 4 nodes would be drained, more "
                                       "than the 50 % of drain_at_most in the profile. Look for"),
                             HasSubstr("--drain-all")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("3 of 4 nodes bad"), HasSubstr("# 3 of 4 nodes would be"),
                             HasSubstr("\nTo drain these nodes all the same (or repeat with "
                                       "--drain-all):\n  scontrol update NodeName=n1 ")));
  EXPECT_EQ(document()["drain"]["asked"], true);
  EXPECT_EQ(document()["drain"]["done"], false);
  EXPECT_THAT(document()["drain"]["shared_cause"].get<std::string>(), HasSubstr("3 of 4 nodes"));
  EXPECT_EQ(document()["drain_commands"].size(), 3U);

  const CommandRun as_json = accept({"--drain", "--json"});
  EXPECT_EQ(as_json.code, static_cast<int>(ExitCode::refused));
  EXPECT_EQ(json::parse(as_json.out), document());

  const CommandRun all = accept({"--drain-all"});
  EXPECT_EQ(all.code, kBadMachine);
  EXPECT_THAT(all.out, AllOf(HasSubstr("\nDrained:\n"), Not(HasSubstr("would be drained"))));
  EXPECT_EQ(read_file(path("drained")), "NodeName=n1\nNodeName=n2\nNodeName=n3\n");
  EXPECT_EQ(document()["drain"]["done"], true);
}

TEST_F(AcceptCommand, TheProfileSaysHowManyNodesAreDrained) {
  for (const int node : {1, 2, 3, 4}) {
    health(node, 99, {"the fan stands still"});
  }
  make_program("bin/scontrol", "touch drained\n");
  profile("n[1-4]", "rounds: 1\ndrain_at_most: 100\n");
  EXPECT_EQ(accept({"--drain"}).code, kBadMachine);
  EXPECT_TRUE(fs::exists(path("drained")));
  fs::remove(path("drained"));
  health(1, 99);
  health(2, 99);
  health(3, 99);
  profile("n[1-4]", "rounds: 1\ndrain_at_most: 20\n");
  EXPECT_EQ(accept({"--drain"}).code, static_cast<int>(ExitCode::refused)) << "one of four";
  EXPECT_FALSE(fs::exists(path("drained")));
  profile("n[1-4]", "rounds: 1\ndrain_at_most: 101\n");
  EXPECT_EQ(accept({"--drain"}).code, static_cast<int>(ExitCode::usage));
}

TEST_F(AcceptCommand, WhatIsNotAskedForIsNotDrained) {
  health(3, 25);
  make_program("bin/scontrol", "touch drained\n");
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_FALSE(fs::exists(path("drained")));
}

TEST_F(AcceptCommand, ANodeThatCannotBeDrainedIsAnErrorAfterTheVerdictsAreWritten) {
  health(3, 25);
  make_program("bin/scontrol", "echo 'Invalid user id' >&2; exit 1\n");
  const CommandRun run = accept({"--drain"});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::io));
  EXPECT_THAT(run.err, HasSubstr("a node could not be drained: scontrol: exit code 1: Invalid "
                                 "user id"));
  EXPECT_EQ(document()["accepted"], false);
}

TEST_F(AcceptCommand, ComplaintsOfHealthAreAnAnswerAndOtherFailuresAreComplaints) {
  health(1, 99, {"the fan stands still"});
  write("code-n1", "4");
  write("code-n2", "3");
  write("errors-n2", "srun: task 0 launched\n-----\ntrireme: no memory\nand more\n");
  write("code-n3", "1");
  write("errors-n3", "----- ---\nno such host\nlater\n");
  write("health-n4", "{");
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine);
  const json nodes = document()["nodes"];
  EXPECT_THAT(texts_of(nodes[0]["complaints"]), ElementsAre("the fan stands still"));
  EXPECT_THAT(texts_of(nodes[1]["complaints"]),
              ElementsAre("health has failed: exit code 3: trireme: no memory",
                          "memory could not be measured"));
  EXPECT_EQ(nodes[2]["complaints"][0], "health has failed: exit code 1: no such host");
  EXPECT_THAT(nodes[3]["complaints"][0].get<std::string>(), HasSubstr("health has failed: "));
  EXPECT_THAT(run.out, AllOf(HasSubstr("BAD: the fan stands still\n"),
                             HasSubstr("- Node n1: the fan stands still.\n"),
                             HasSubstr("'Reason=trireme accept: the fan stands still'"),
                             HasSubstr("4 of 4 nodes bad"),
                             HasSubstr("# 4 of 4 nodes would be drained, more than the 50 %")));
}

TEST_F(AcceptCommand, ACodeOfFourIsNoAnswerOfABenchmark) {
  make_program("program",
               "[ \"$1\" = health ] && exec cat health-$NODE\n"
               "cp link-$A-$B \"$4\"; cp link-$A-$B \"$6\"; exit 4\n");
  profile("n[1-2]");
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(texts_of(document()["links"][0]["complaints"]),
              ElementsAre("p2p --test bandwidth has failed: exit code 4"));
}

TEST_F(AcceptCommand, AMeasurementThatTakesTooLongIsEnded) {
  make_program("program", "[ \"$1\" = health ] && exec cat health-$NODE\nexec sleep 60\n");
  profile("n[1-2]", "rounds: 1\nseconds: 1\n");
  EXPECT_EQ(accept().code, kBadMachine);
  EXPECT_THAT(texts_of(document()["links"][0]["complaints"]),
              ElementsAre("p2p --test bandwidth has failed: no result: no answer within 1 s, the "
                          "`seconds` of the profile"));
}

TEST_F(AcceptCommand, ABadLinkOfGoodEndsIsItsOwnFault) {
  link(1, 2, 900);
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine);
  EXPECT_THAT(run.err, HasSubstr("accept: bad links, their ends with known-good partners\n"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("n1 - n2                  BAD: gemm time_us at 1"),
                             HasSubstr("# machine REJECTED: 0 of 4 nodes bad, 1 of 6 links bad; "),
                             HasSubstr("- The link between n1 and n2 reaches 1"),
                             HasSubstr("(median of 1 round, "), Not(HasSubstr("scontrol"))));
  const json found = document();
  EXPECT_TRUE(found["nodes_with_bad_links"].empty());
  ASSERT_EQ(found["partner_tests"].size(), 4U);
  EXPECT_EQ(found["partner_tests"][0]["suspect"], "n1");
  EXPECT_EQ(found["partner_tests"][0]["partner"], "n3");
  EXPECT_EQ(found["partner_tests"][0]["good"], true);
  EXPECT_EQ(found["partner_tests"][0]["figures"][0]["value"], 104.0);
  for (const std::string& text :
       {run.out, link_verdict("n1", "n2")["sentence"].get<std::string>()}) {
    EXPECT_THAT(text, HasSubstr(" n1 is fast with n3 and n4. n2 is fast with n4 and n3. So the "
                                "fault lies on the path between the two."));
  }
}

TEST_F(AcceptCommand, ABadNodeIsNoPartnerAndItsPairsAreMeasuredOneAfterTheOther) {
  link(1, 2, 900);
  health(3, 25);
  EXPECT_EQ(accept().code, kBadMachine);
  const json tests = document()["partner_tests"];
  ASSERT_EQ(tests.size(), 2U);
  for (const int i : {0, 1}) {
    EXPECT_EQ(tests[static_cast<std::size_t>(i)]["suspect"], fmt::format("n{}", i + 1));
    EXPECT_EQ(tests[static_cast<std::size_t>(i)]["partner"], "n4");
  }
  EXPECT_TRUE(fs::exists(path("out/n1-n4-p01-0.json")));
  EXPECT_TRUE(fs::exists(path("out/n2-n4-p02-0.json"))) << "n4 has one partner at a time";
}

TEST_F(AcceptCommand, ANodeWhoseLinksAreAllBadIsGuilty) {
  profile("n[1-4]", "rounds: 1\n", "  limits: [\"gemm time_us=200\"]\n");
  for (const int other : {1, 3, 4}) {
    link(std::min(other, 2), std::max(other, 2), 900);
  }
  const CommandRun run = accept();
  EXPECT_EQ(run.code, kBadMachine);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("0 of 4 nodes bad, 3 of 6 links bad"),
                    HasSubstr("- The links of n2 are slow with known-good partners, too: "),
                    HasSubstr(". With n1: gemm time_us 900 us with m=96 precision=fp32, typical "),
                    Not(HasSubstr("- The link between")),
                    HasSubstr("scontrol update NodeName=n2 State=DRAIN 'Reason=trireme accept: "
                              "slow link with every partner'\n"),
                    Not(HasSubstr("NodeName=n1"))));
  EXPECT_EQ(document()["nodes_with_bad_links"], json{"n2"});
  const json judged = document();
  for (const json& each : judged["links"]) {
    EXPECT_EQ(each["good"], each["nodes"][0] != "n2" && each["nodes"][1] != "n2") << each;
    EXPECT_EQ(each["good"].get<bool>() || each["findings"][0]["limit"].get<bool>(), true);
  }
}

TEST_F(AcceptCommand, PairsThatWereNotMeasuredAreCounted) {
  profile("n[1-4]", "rounds: 1\nlink_rounds: 1\n");
  EXPECT_THAT(accept().out, HasSubstr("# 2 of all 6 pairs were measured: 1 of each node. "
                                      "link_rounds in the profile sets how many\n"));
  EXPECT_EQ(document()["links"].size(), 2U);
}

TEST_F(AcceptCommand, OneNodeHasNoLinks) {
  profile("n1", "rounds: 1\n", kLinkLimit, kNodeLimit);
  const CommandRun run = accept();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# machine ACCEPTED: 0 of 1 node bad, 0 of 0 links bad; "));
  EXPECT_THAT(run.out, Not(HasSubstr("pairs were measured")));
}

TEST_F(AcceptCommand, TheNodesAreThoseOfTheProfileOrOfTheJob) {
  profile("");
  const CommandRun none = accept();
  EXPECT_EQ(none.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(none.err, HasSubstr("the profile names no nodes, and this is no Slurm job"));
  variables_.set("SLURM_JOB_NODELIST", "n[2-3]");
  EXPECT_THAT(accept().out, AllOf(HasSubstr("n2  "), HasSubstr("n3  "), HasSubstr("of 2 nodes")));
  profile("n1");
  EXPECT_THAT(accept().out, HasSubstr("of 1 node bad")) << "the profile comes first";
}

TEST_F(AcceptCommand, NamesThatCouldBeOptionsOrPathsAreRefused) {
  profile("n1,a/b");
  EXPECT_EQ(accept().code, static_cast<int>(ExitCode::usage));
  for (const char* const nodes : {"n1,n2,n1", "-n1"}) {
    profile(nodes);
    const CommandRun run = accept();
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << nodes;
    EXPECT_THAT(run.err, HasSubstr("is no name of a node, or occurs twice")) << nodes;
  }
  EXPECT_FALSE(fs::exists(path("calls"))) << "nothing was started";
}

TEST_F(AcceptCommand, WithoutDirTheFolderIsNamedAfterTheTime) {
  const fs::path before = fs::current_path();
  fs::create_directory(path("here"));
  fs::current_path(path("here"));
  profile("n1", "rounds: 1\n", "", kNodeLimit);
  const CommandRun run = run_command_line(add_command, {"accept", path("accept.yaml"), "--json"});
  fs::current_path(before);
  EXPECT_EQ(run.code, 0) << run.err;
  std::vector<fs::path> made;
  for (const auto& entry : fs::directory_iterator(path("here"))) {
    made.push_back(entry.path());
  }
  ASSERT_EQ(made.size(), 1U);
  EXPECT_THAT(made[0].filename().string(), testing::MatchesRegex("accept-[0-9]{8}-[0-9]{6}"));
  EXPECT_EQ(run.out, read_file(made[0] / "acceptance.json"));
}

TEST_F(AcceptCommand, AProfileThatIsWrongOrAbsentStartsNothing) {
  profile("n1", "rounds: 0\n");
  EXPECT_EQ(accept().code, static_cast<int>(ExitCode::usage));
  fs::remove(path("accept.yaml"));
  EXPECT_EQ(accept().code, static_cast<int>(ExitCode::not_found));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(AcceptCommand, TheFolderIsNoneOfOtherUse) {
  fs::create_directory(path("out"));
  write("out/study.json", "{}");
  const CommandRun study = accept();
  EXPECT_EQ(study.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(study.err, HasSubstr("--dir: " + path("out") + " is the folder of a study"));
  EXPECT_FALSE(fs::exists(path("out/.accept.lock")));
  EXPECT_FALSE(fs::exists(path("calls"))) << "nothing was started";
}

TEST_F(AcceptCommand, WhatItHasMeasuredIsReplacedByNoOtherCommand) {
  ASSERT_EQ(accept().code, 0);
  for (const fs::directory_entry& each : fs::directory_iterator(path("out"))) {
    EXPECT_THAT(problem_with_place_of_result(each.path()), HasSubstr("belongs to the acceptance"));
  }
  EXPECT_EQ(accept().code, 0) << "the same command replaces it";
}

TEST_F(AcceptCommand, AProfileThatCannotBeStartedIsWrongAndNoNodeBad) {
  const std::string right = read_file(path("accept.yaml"));
  struct Mistake {
    std::string instead_of, by, complaint;
  };
  const std::vector<Mistake> mistakes = {
      {"[health]", "[gem --size 128]",
       "node.measures: 'gem --size 128' cannot be started as `trireme bench gem --size 128 -J "
       "FILE`: trireme bench: unknown command 'gem'; did you mean 'gemm'?"},
      {"[health]", "[gemm --sise 128]",
       "trireme bench gemm: unknown option '--sise'; did you mean '--size'?"},
      {"[health]", "[health --seconds 3]", "trireme health: --seconds is given more than once"},
      {"[health]", "[health --help]", "--help measures nothing"},
      {"[health]", "[' ']", "' ' names no benchmark"},
      {"p2p --test bandwidth", "p2p -J x", "link.measures: 'p2p -J x' cannot be started as"},
      {"[env, \"NODE", "[nosuchprog, \"NODE",
       "node.start: there is no program 'nosuchprog' in the PATH of this node"},
      {"{node}", "{nodes}",
       "'{nodes}' in 'NODE={nodes}' stands for nothing: the names of nodes are {node}"},
      {"[health]", "['io --dir /scratch/{node}']",
       "'{node}' in 'io --dir /scratch/{node}' stands for nothing: only words of node.start are"},
      {"{b}", "{node}", "the names of nodes are {a} and {b}"}};
  for (const Mistake& each : mistakes) {
    std::string wrong = right;
    wrong.replace(wrong.find(each.instead_of), each.instead_of.size(), each.by);
    write("accept.yaml", wrong);
    const CommandRun run = accept();
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << each.by;
    EXPECT_THAT(run.err, AllOf(HasSubstr(path("accept.yaml")), HasSubstr(each.complaint)));
    EXPECT_FALSE(fs::exists(path("out"))) << each.by;
  }
  EXPECT_FALSE(fs::exists(path("calls"))) << "nothing was started";
}

}  // namespace
}  // namespace trireme
