// `trireme scale` with programs `mpirun`, `sbatch` and `squeue` of the test's own, whose runs are
// prepared folders: the steps and traces are such that the tables can be computed by hand.
#include "src/app/study/scale_command.h"

#include "tests/app/records/scale_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ScaleCommandTest : public ScaleFolder {};

TEST_F(ScaleCommandTest, TheTableSaysHowWellItScalesAndWhatCostsMost) {
  const CommandRun run = here("1,2,4");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(take_calls(), "mpirun -n 1\nmpirun -n 2\nmpirun -n 4\n");
  EXPECT_THAT(run.err, HasSubstr("scale: run 2 of 3: 2 nodes, repetition 1\n"));
  EXPECT_THAT(
      run.out,
      AllOf(
          HasSubstr("# strong scaling of run, 1 rank per node, global batch 8\n"),
          HasSubstr("\n      1      1     1        100    1.000  1.000 ("),
          HasSubstr("\n      2      2     1         60    1.667  0.833 ("),
          HasSubstr("\n      4      4     1         50    2.000  0.500 ("),
          HasSubstr("# nodes    step compute    comm  imbal.  bubble   input  optim.    ckpt   "
                    "other\n"
                    "      1     100      90       0       0       0       0       6       0       "
                    "4\n"
                    "      2      60      45       5       5       0       0       3       0       "
                    "2\n"
                    "      4      50      20      26       0       0       0       2       0       "
                    "2\n"),
          HasSubstr("# Amdahl: serial fraction 0.292; residuals "), HasSubstr("# USL: contention "),
          HasSubstr("# knee: 2 nodes, efficiency 0.83; 4 nodes have 0.50, below 0.80.\n"
                    "# What costs most there: exposed communication\n")));
  EXPECT_FALSE(fs::exists(path("study/n0002-r01/checkpoints"))) << "checkpoints are of no use";
}

TEST_F(ScaleCommandTest, TheKneeObeysTheEfficiencyThatIsAskedFor) {
  EXPECT_THAT(here("1,2,4", {"--efficiency", "90"}).out,
              HasSubstr("# knee: 1 node, efficiency 1.00; 2 nodes have 0.83, below 0.90.\n"));
  EXPECT_THAT(here("1,2,4", {"--efficiency", "45"}).out,
              HasSubstr("# knee: 4 nodes, efficiency 0.50; all measured numbers of nodes reach "
                        "0.45\n"));
  const CommandRun open = here("1,2,4", {"--efficiency", "50", "-J", path("open.json")});
  EXPECT_THAT(open.out,
              AllOf(HasSubstr("# knee: not certain: 4 nodes have an efficiency of 0.50 (0.4"),
                    HasSubstr("# which may be above or below 0.50: give more --repeat")));
  const json document = json::parse(read_file(path("open.json")));
  for (const json& result : document["results"]) {
    EXPECT_NE(result["metrics"].value("knee", false), true);
  }
}

TEST_F(ScaleCommandTest, ContentionAloneBoundsTheThroughput) {
  prepare(2, 62.5, std::vector<RankStep>(2, {20, 10, 5, 60}));
  prepare(4, 43, std::vector<RankStep>(4, {20, 10, 5, 40}));
  EXPECT_THAT(here("1,2,4").out,
              AllOf(HasSubstr("# USL: contention 0.241, coherency 0; "),
                    HasSubstr("# USL: throughput approaches 4.15 times that of the fewest nodes\n"),
                    Not(HasSubstr("without a limit"))));
}

TEST_F(ScaleCommandTest, AWeakStudyComparesStepsOfMoreWork) {
  const CommandRun run = here("1,2", {"--weak"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("# weak scaling of run, 1 rank per node, global batch 8 on "
                                       "the fewest nodes\n"),
                             HasSubstr("      2      2     1         60    3.333  1.667 ("),
                             HasSubstr("# Gustafson: serial fraction 0; "), Not(HasSubstr("USL"))));
}

TEST_F(ScaleCommandTest, JsonHasThePointsAndTheFits) {
  const CommandRun run = here("1,2,4", {"--json", "-J", path("named.json")});
  const json document = json::parse(run.out);
  EXPECT_EQ(document, json::parse(read_file(path("named.json"))));
  EXPECT_EQ(document["command"], "scale");
  ASSERT_EQ(document["results"].size(), 5U);
  const json& two = document["results"][1];
  EXPECT_EQ(two["name"], "scale");
  EXPECT_EQ(two["params"]["nodes"], 2);
  EXPECT_EQ(two["params"]["ranks"], 2);
  EXPECT_EQ(two["params"]["scaling"], "strong");
  EXPECT_EQ(two["params"]["launcher"], "mpirun");
  EXPECT_EQ(two["params"]["global_batch"], 8);
  EXPECT_EQ(two["metrics"]["step_ms"], 60.0);
  EXPECT_EQ(two["metrics"]["knee"], true);
  EXPECT_NEAR(two["metrics"]["compute_ms"].get<double>(), 45, 1e-9);
  EXPECT_NEAR(two["metrics"]["imbalance_ms"].get<double>(), 5, 1e-9);
  EXPECT_EQ(document["results"][2]["metrics"]["knee"], false);
  EXPECT_EQ(two["samples"]["step_ms"]["values"], (json{59.0, 60.0, 61.0, 59.0, 60.0, 61.0}));
  EXPECT_EQ(document["results"][3]["params"]["law"], "amdahl");
  EXPECT_TRUE(document["results"][3]["metrics"]["contention"].is_null());
  EXPECT_EQ(document["results"][4]["params"]["law"], "usl");
  EXPECT_TRUE(document["results"][4]["metrics"]["serial_fraction"].is_null());
}

TEST_F(ScaleCommandTest, OnlyMissingRunsAreMade) {
  EXPECT_EQ(here("1,2").code, 0);
  take_calls();
  fs::remove(path("study/n0002-r01/DONE"));
  write("study/n0002-r01/left", "");
  EXPECT_EQ(here("1,2").code, 0);
  EXPECT_EQ(take_calls(), "mpirun -n 2\n");
  EXPECT_FALSE(fs::exists(path("study/n0002-r01/left"))) << "an unfinished run starts afresh";
  EXPECT_EQ(here("1,2").code, 0);
  EXPECT_EQ(take_calls(), "");
}

TEST_F(ScaleCommandTest, TheRanksOfAllNodesAreStarted) {
  prepare(8, 40, std::vector<RankStep>(8, {20, 10, 5, 40}));
  fs::rename(path("ran-2"), path("kept"));
  prepare(2, 100, std::vector<RankStep>(2, {20, 10, 5, 100}));
  const CommandRun run = scale("1,4", {"--ranks-per-node", "2"});
  EXPECT_EQ(take_calls(), "mpirun -n 2\nmpirun -n 8\n");
  EXPECT_THAT(run.out, AllOf(HasSubstr("2 ranks per node"),
                             HasSubstr("\n      4      8     1         40    2.500  0.625 (")));
}

TEST_F(ScaleCommandTest, AStudyIsMadeInNoDataset) {
  fs::create_directories(path("study/shards"));
  write("study/manifest.json", "{}");
  const CommandRun refused = here("1");
  EXPECT_EQ(refused.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(refused.err, HasSubstr("--dir: " + path("study") + " is a dataset"));
  EXPECT_FALSE(fs::exists(path("study/study.json")));
  EXPECT_FALSE(fs::exists(path("study/.scale.lock")));
  EXPECT_FALSE(fs::exists(path("calls"))) << "nothing was started";
}

TEST_F(ScaleCommandTest, AFailedRunIsReportedWithTheEndOfItsOutput) {
  const std::string end(1999, 'b');
  make_program("mpirun", "[ $2 = 1 ] || { printf 'first\\naaaa\\n%s\\n' " + end +
                             " >&2; exit 3; }\n" + kFindWords +
                             "mkdir -p \"$dir\" && cp -r ran-1/. \"$dir\"\n"
                             "cp asked.yaml \"$dir/config.yaml\"\n");
  const CommandRun run = here("1,2");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::io));
  EXPECT_THAT(run.err, AllOf(HasSubstr("the run in " + path("study/n0002-r01") +
                                       " has failed: mpirun: exit code 3"),
                             HasSubstr("\n..." + end + "\n\nThe same command continues the study"),
                             Not(HasSubstr("aaaa\n" + end))));
  EXPECT_TRUE(fs::exists(path("study/n0001-r01/DONE"))) << "the run before it is kept";
}

TEST_F(ScaleCommandTest, ARunThatEndsBeforeItsLastStepHasFailed) {
  fs::remove(path("ran-2/DONE"));
  const CommandRun run = here("1,2");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::io));
  EXPECT_THAT(run.err, HasSubstr("the run in " + path("study/n0002-r01") +
                                 " has failed: it ended before its last step\n"));
}

TEST_F(ScaleCommandTest, RunsUnderOtherConditionsAreNotCompared) {
  write("more-2", "train.recompute: full\n");
  write("more-1", "train.recompute: none\n");
  const CommandRun run = here("1,2");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("differ in more than the number of nodes:\n  train.recompute"),
                    Not(HasSubstr("train.global_batch")), Not(HasSubstr("start.ranks")),
                    Not(HasSubstr("train.threads")), HasSubstr("remove its folder")));
}

TEST_F(ScaleCommandTest, RanksThatShareCoresAreExplained) {
  write("ran-2/logs/rank-00000.jsonl",
        "{\"event\":\"start\",\"ranks\":2}\n{\"event\":\"rank\",\"threads\":2}\n");
  write("ran-1/logs/rank-00000.jsonl",
        "{\"event\":\"start\",\"ranks\":1}\n{\"event\":\"rank\",\"threads\":4}\n");
  EXPECT_THAT(here("1,2").err, HasSubstr(". If ranks share their cores with more ranks on more "
                                         "nodes, set train.threads and begin a new study"));
}

TEST_F(ScaleCommandTest, ClusterJobsWaitForEachOther) {
  on_slurm("exit 1\n");
  const CommandRun run = slurm("1,2", {"--no-wait"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "the jobs are submitted; the same command shows the results when they have ended\n");
  EXPECT_THAT(run.err, HasSubstr("scale: submitted job 102, 2 of 2: 2 nodes, repetition 1\n"));
  EXPECT_EQ(take_calls(), "sbatch --parsable\nsbatch --parsable --dependency=afterany:101\n");
  EXPECT_EQ(read_file(path("study/n0002-r01.job")), "102\n");
  EXPECT_THAT(read_file(path("script")),
              AllOf(HasSubstr("#SBATCH --nodes=2\n"), HasSubstr("#SBATCH --time=60\n"),
                    HasSubstr("#SBATCH --job-name=scale-run-n0002-r01\n"),
                    HasSubstr("run.dir=" + path("study/n0002-r01"))));
  EXPECT_TRUE(fs::is_empty(path("tmp"))) << "the scripts are removed";
}

TEST_F(ScaleCommandTest, JobsThatStillRunAreNotSubmittedAgain) {
  on_slurm("echo RUNNING\n");
  slurm("1,2", {"--no-wait"});
  take_calls();
  EXPECT_EQ(slurm("1,2,4", {"--no-wait"}).code, 0);
  EXPECT_EQ(take_calls(),
            "squeue --noheader --jobs=101\nsqueue --noheader --jobs=102\n"
            "sbatch --parsable --dependency=afterany:102\n");
  // Job files that hold no number are those of no job.
  write("study/n0001-r01.job", "101; rm\n");
  EXPECT_EQ(slurm("1,2,4", {"--no-wait", "--time", "120"}).code, 0);
  EXPECT_THAT(take_calls(), testing::StartsWith("sbatch --parsable\nsqueue "));
  EXPECT_THAT(read_file(path("script")), HasSubstr("#SBATCH --time=120\n"));
}

TEST_F(ScaleCommandTest, JobsThatHaveEndedAreSubmittedAgain) {
  for (const char* const state :
       {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}) {
    on_slurm(std::string("echo ") + state + "\n");
    EXPECT_EQ(slurm("1", {"--no-wait"}).code, 0);
    take_calls();
    EXPECT_EQ(slurm("1", {"--no-wait"}).code, 0);
    EXPECT_THAT(take_calls(), HasSubstr("sbatch")) << state;
  }
}

TEST_F(ScaleCommandTest, WithoutAnAnswerOfSqueueNothingIsSubmitted) {
  on_slurm("exit 127\n");
  slurm("1", {"--no-wait"});
  take_calls();
  const CommandRun run = slurm("1", {"--no-wait"});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::io));
  EXPECT_THAT(run.err, HasSubstr("squeue: "));
  EXPECT_THAT(take_calls(), Not(HasSubstr("sbatch")));
}

TEST_F(ScaleCommandTest, FinishedRunsAreReportedThoughOthersFailed) {
  on_slurm("exit 1\n");
  slurm("1,2", {"--no-wait"});
  finish(1);
  fs::create_directories(path("study/n0001-r01/checkpoints/step-00000001"));
  const CommandRun run = slurm("1,2");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::device));
  EXPECT_THAT(run.out, HasSubstr("# knee: 1 node, efficiency 1.00; all measured"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("scale: waiting for job 103, 2 of 2: 2 nodes"),
                             HasSubstr("scale: job 103 has ended without finishing " +
                                       path("study/n0002-r01") + "\n"),
                             HasSubstr("some runs have failed; the same command repeats them")));
  EXPECT_FALSE(fs::exists(path("study/n0001-r01/checkpoints")));
}

TEST_F(ScaleCommandTest, WithoutARunOnTheFewestNodesThereIsNoReport) {
  on_slurm("exit 1\n");
  slurm("1,2", {"--no-wait"});
  finish(2);
  const CommandRun run = slurm("1,2");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(run.err, HasSubstr(path("study") + " has no finished run on 1 nodes, the base"));
}

TEST_F(ScaleCommandTest, OptionsOutOfRangeAreRefused) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--nodes", "0"},
                                             {"--nodes", "100001"},
                                             {"--ranks-per-node", "0"},
                                             {"--ranks-per-node", "4097"},
                                             {"--repeat", "0"},
                                             {"--repeat", "101"},
                                             {"--steps", "2"},
                                             {"--steps", "1000001"},
                                             {"--efficiency", "0.9"},
                                             {"--efficiency", "100.1"}}) {
    std::vector<std::string> words = {path("run.yaml"), "--dir", path("study")};
    words.insert(words.end(), wrong.begin(), wrong.end());
    if (wrong[0] != "--nodes") {
      words.insert(words.end(), {"--nodes", "1"});
    }
    EXPECT_EQ(scale_words(words).code, static_cast<int>(ExitCode::usage)) << wrong[0] << wrong[1];
  }
  const CommandRun run = scale("1");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("give the ranks of each node with --ranks-per-node"));
  EXPECT_FALSE(fs::exists(path("study")));
}

TEST_F(ScaleCommandTest, TheFolderIsNamedAfterTheConfigurationAndTheKind) {
  make_program("mpirun", "exit 1\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  scale_words({"run.yaml", "--nodes", "1", "--ranks-per-node", "1"});
  scale_words({"run.yaml", "--nodes", "1", "--ranks-per-node", "1", "--weak"});
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(path("scale-run-strong/study.json")));
  EXPECT_TRUE(fs::exists(path("scale-run-weak/study.json")));
}

}  // namespace
}  // namespace trireme
