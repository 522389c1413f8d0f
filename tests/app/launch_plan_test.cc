#include "src/app/launch/launch_plan.h"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "slurm/policy/site_list.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/environment_variables.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LaunchPlanTest : public testing::Test {
 protected:
  LaunchPlanTest() {
    std::ofstream(config_) << "model: {preset: tiny-gpt2}\n"
                              "data: {train: /nowhere}\n"
                              "train: {steps: 5, global_batch: 24}\n"
                              "numerics: {reproducibility: layout}\n"
                              "run: {dir: " +
                                  (folder_.path() / "run").string() + "}\n";
    variables_.set("OMPI_ALLOW_RUN_AS_ROOT", "1");
    variables_.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                             "SLURM_JOB_NODELIST", "SLURM_NTASKS_PER_NODE", "SLURMD_NODENAME"}) {
      variables_.set(name, std::nullopt);
    }
    options_.run = {"train", config_.string()};
  }

  // Makes the environment that of a Slurm job on n1, n2 and n3.
  void enter_job() {
    const fs::path scontrol = folder_.path() / "scontrol";
    std::ofstream(scontrol) << "#!/bin/sh\n"
                               "echo 'SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]'\n"
                               "echo 'SwitchName=-x Level=0 LinkSpeed=1 Nodes=n3'\n";
    fs::permissions(scontrol, fs::perms::owner_all);
    variables_.set("PATH", folder_.path().string() + ":/usr/bin:/bin");
    variables_.set("SLURM_JOB_ID", "40");
    variables_.set("SLURM_JOB_NODELIST", "n[1-3]");
    variables_.set("SLURM_NTASKS_PER_NODE", "2(x3)");
    variables_.set("SLURMD_NODENAME", "n2");
  }

  fs::path host_file(const std::string& text) const {
    const fs::path path = folder_.path() / "hosts";
    std::ofstream(path) << text;
    return path;
  }

  LaunchPlan plan() const {
    std::vector<std::string> texts = environment_;
    std::vector<char*> entries;
    for (std::string& text : texts) {
      entries.push_back(text.data());
    }
    entries.push_back(nullptr);
    return make_launch_plan(options_, entries.data());
  }
  std::string complaint() const {
    return message_of<ConfigError>([this] { (void)plan(); });
  }

  EnvironmentVariables variables_;
  TempFolder folder_;
  const fs::path config_ = folder_.path() / "run.yaml";
  LaunchOptions options_;
  std::vector<std::string> environment_;
};

std::vector<std::string> names_of(const LaunchPlan& plan) {
  std::vector<std::string> names;
  for (const NodeSpec& node : plan.nodes) {
    names.push_back(node.name);
  }
  return names;
}

TEST_F(LaunchPlanTest, WithoutOptionsOneRankRunsHere) {
  const LaunchPlan made = plan();
  EXPECT_EQ(made.setting.reach, Reach::local);
  EXPECT_EQ(made.setting.starter, Starter::mpirun);
  EXPECT_EQ(made.setting.ranks_per_node, 1);
  EXPECT_THAT(names_of(made), ElementsAre("local0"));
  EXPECT_EQ(made.course.nodes_wanted, 1);
  EXPECT_EQ(made.course.least_nodes, 1);
  EXPECT_FALSE(made.course.in_slurm);
  EXPECT_EQ(made.slurm_job, "");
  EXPECT_EQ(made.run_folder, folder_.path() / "run");
  EXPECT_EQ(made.checkpoint_folder, folder_.path() / "run/checkpoints");
  EXPECT_EQ(made.setting.program, fs::read_symlink("/proc/self/exe"));
  EXPECT_EQ(made.setting.run, options_.run);
  EXPECT_THAT(made.setting.ssh,
              ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"));
}

TEST_F(LaunchPlanTest, SparesAreNotWantedAndMayBeFewer) {
  options_.local = 4;
  options_.spares = 1;
  options_.ranks_per_node = 2;
  options_.ports = "47000-47099";
  LaunchPlan made = plan();
  EXPECT_THAT(names_of(made), ElementsAre("local0", "local1", "local2", "local3"));
  EXPECT_EQ(made.course.nodes_wanted, 3);
  EXPECT_EQ(made.course.least_nodes, 3);
  EXPECT_EQ(made.course.ranks_per_node, 2);
  EXPECT_EQ(made.setting.ports.first, 47000);
  EXPECT_EQ(made.setting.ports.last, 47099);
  options_.min_nodes = 2;
  made = plan();
  EXPECT_EQ(made.course.nodes_wanted, 3);
  EXPECT_EQ(made.course.least_nodes, 2);
}

// A pipeline of 4 stages takes two nodes of 2 ranks.
TEST_F(LaunchPlanTest, TheCourseKnowsWhichNumbersOfNodesFitTheLayout) {
  options_.local = 2;
  options_.ranks_per_node = 2;
  options_.run.emplace_back("parallel.pp=4");
  const LaunchPlan made = plan();
  EXPECT_FALSE(made.course.fits(1));
  EXPECT_TRUE(made.course.fits(2));
  EXPECT_FALSE(made.course.fits(3));
  EXPECT_TRUE(made.course.fits(4));
}

TEST_F(LaunchPlanTest, AHostFileIsReachedOverSsh) {
  options_.hosts = host_file("n1 slots=4 group=r1\nn2 slots=4\n");
  options_.ssh = "rsh  -p 22";
  options_.spares = 1;
  LaunchPlan made = plan();
  EXPECT_EQ(made.setting.reach, Reach::ssh);
  EXPECT_THAT(made.setting.ssh, ElementsAre("rsh", "-p", "22"));
  EXPECT_THAT(names_of(made), ElementsAre("n1", "n2"));
  EXPECT_EQ(made.nodes[0].group, "r1");
  EXPECT_EQ(made.setting.ranks_per_node, 4);
  options_.ranks_per_node = 3;
  EXPECT_EQ(plan().setting.ranks_per_node, 3);
  options_.ranks_per_node = 0;
  options_.hosts = host_file("n1\nn2\n");
  EXPECT_EQ(plan().setting.ranks_per_node, 1);
  options_.hosts = folder_.path() / "none";
  EXPECT_THROW((void)plan(), NotFound);
}

// Otherwise mpirun would report this in each of four attempts.
TEST_F(LaunchPlanTest, MoreCoresThanThisHostHasAreRefused) {
  options_.cpus_per_rank = 4096;
  options_.ranks_per_node = 2;
  EXPECT_THAT(complaint(), AllOf(HasSubstr("--cpus-per-rank 4096: 2 ranks on this host would need"),
                                 HasSubstr("8192 cores, but it has ")));
  options_.local = 3;
  options_.spares = 2;  // no ranks run on them
  EXPECT_THAT(complaint(), HasSubstr("2 ranks on this host would need"));
  options_.local = options_.spares = 0;
  options_.launcher_arguments = {"--bind-to", "core:overload-allowed"};
  EXPECT_EQ(plan().setting.cpus_per_rank, 4096);
  options_.launcher_arguments.clear();
  options_.hosts = host_file("n1 slots=2\n");  // its cores are unknown
  EXPECT_EQ(plan().setting.cpus_per_rank, 4096);
}

TEST_F(LaunchPlanTest, ThePortsMustBeEnoughForThisHost) {
  options_.local = 3;
  options_.ports = "47000-47002";
  EXPECT_THAT(complaint(), HasSubstr("--ports 47000-47002 has 3 ports, but this host needs 4"));
  options_.ports = "47000-47003";
  EXPECT_EQ(plan().setting.ports.last, 47003);
  options_.ports = "47000-47002";
  options_.spares = 1;
  options_.site_list = folder_.path() / "bad_nodes";
  ASSERT_TRUE(append_to_site_list(options_.site_list, "local1", "broken"));
  EXPECT_EQ(plan().setting.ports.last, 47002);
  options_.site_list.clear();
  options_.local = options_.spares = 0;
  options_.ports = "47000";
  EXPECT_THAT(complaint(), HasSubstr("has 1 port, but this host needs 2"));
  options_.hosts = host_file("n1\nn2\n");  // their agents are on other hosts
  EXPECT_EQ(plan().setting.ports.first, 47000);
}

// A rank would refuse it as well, but only after the launch has written its files there.
TEST_F(LaunchPlanTest, ARunWithinADatasetIsRefused) {
  fs::create_directories(folder_.path() / "shards");
  write_file_durably(folder_.path() / "manifest.json", "{}");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("run.dir"), HasSubstr("is a dataset")));
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

TEST_F(LaunchPlanTest, ARunWithoutAFolderOfItsOwnIsRefused) {
  std::ofstream(folder_.path() / "run") << "a file";
  EXPECT_THAT(complaint(), AllOf(HasSubstr("run.dir"), HasSubstr("is not a folder")));
}

TEST_F(LaunchPlanTest, NodesGetTheSameNumberOfRanks) {
  options_.hosts = host_file("n1 slots=4\nn2 slots=4\nn3 slots=2\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("n1 has slots=4, but n3 has slots=2"),
                                 HasSubstr("--ranks-per-node")));
  options_.hosts = host_file("n1 slots=1\nn2\n");
  EXPECT_THAT(complaint(), HasSubstr("n1 has slots=1, but n2 has no slots=N"));
  options_.ranks_per_node = 2;
  EXPECT_EQ(plan().setting.ranks_per_node, 2);
}

TEST_F(LaunchPlanTest, InASlurmJobItsNodesAreUsed) {
  enter_job();
  LaunchPlan made = plan();
  EXPECT_EQ(made.setting.reach, Reach::slurm);
  EXPECT_THAT(names_of(made), ElementsAre("n1", "n2", "n3"));
  EXPECT_EQ(made.nodes[0].group, "s1");
  EXPECT_EQ(made.nodes[1].group, "s1");
  EXPECT_EQ(made.nodes[2].group, "");  // the group's name is not safe
  EXPECT_EQ(made.setting.ranks_per_node, 2);
  EXPECT_EQ(made.slurm_job, "40");
  EXPECT_EQ(made.batch_node, "n2");
  EXPECT_TRUE(made.course.in_slurm);
  options_.launcher = "srun";
  EXPECT_EQ(plan().setting.starter, Starter::srun);
  EXPECT_EQ(plan().course.launcher, "srun");
  options_.ranks_per_node = 4;
  EXPECT_EQ(plan().setting.ranks_per_node, 4);
  variables_.set("SLURM_ARRAY_JOB_ID", "39");
  variables_.set("SLURM_ARRAY_TASK_ID", "2");
  EXPECT_EQ(plan().slurm_job, "39_2");
  for (const char* text : {"", "x", "-2"}) {
    variables_.set("SLURM_NTASKS_PER_NODE", text);
    options_.ranks_per_node = 0;
    EXPECT_EQ(plan().setting.ranks_per_node, 1) << text;
  }
}

TEST_F(LaunchPlanTest, OptionsComeBeforeTheSlurmJob) {
  enter_job();
  options_.local = 2;
  LaunchPlan made = plan();
  EXPECT_EQ(made.setting.reach, Reach::local);
  EXPECT_EQ(made.slurm_job, "");
  EXPECT_EQ(made.setting.ranks_per_node, 1);
  options_.local = 0;
  options_.hosts = host_file("n1\n");
  made = plan();
  EXPECT_EQ(made.setting.reach, Reach::ssh);
  EXPECT_FALSE(made.course.in_slurm);
}

TEST_F(LaunchPlanTest, RanksOnOtherHostsGetTheVariablesThatMatterToThem) {
  environment_ = {"UCX_TLS=tcp",
                  "OMP_NUM_THREADS=2",
                  "NCCL_DEBUG=INFO",
                  "DNNL_VERBOSE=0",
                  "TRIREME_KERNELS=",
                  "LD_LIBRARY_PATH=/lib",
                  "PATH=/bin",
                  "HOME=/root",
                  "PATHS=1",
                  "MY_UCX_TLS=1",
                  "TRIREME_NODE=n1",
                  "TRIREME_NODE_DIR=/dev/shm",
                  "TRIREME_GENERATION=1",
                  "TRIREME_LAUNCH_ID=1"};
  EXPECT_THAT(plan().setting.handed_on, IsEmpty());  // local ranks inherit them
  options_.hosts = host_file("n1\n");
  EXPECT_THAT(plan().setting.handed_on,
              ElementsAre("UCX_TLS", "OMP_NUM_THREADS", "NCCL_DEBUG", "DNNL_VERBOSE",
                          "TRIREME_KERNELS", "LD_LIBRARY_PATH", "PATH"));
}

TEST_F(LaunchPlanTest, SaysWhatIsWrongWithTheOptions) {
  struct Case {
    const char* words;
    std::function<void(LaunchOptions&)> change;
  };
  const std::string hosts = host_file("n1\n").string();
  const std::vector<Case> cases = {
      {"no run is given", [](LaunchOptions& o) { o.run.clear(); }},
      {"no run is given", [](LaunchOptions& o) { o.run.pop_back(); }},
      {"launch starts runs of 'train', not 'eval'",
       [](LaunchOptions& o) { o.run.front() = "eval"; }},
      {"train.stepz", [](LaunchOptions& o) { o.run.emplace_back("train.stepz=1"); }},
      {"--hosts and --local exclude each other",
       [&](LaunchOptions& o) {
         o.hosts = hosts;
         o.local = 1;
       }},
      {"--ssh names no command", [](LaunchOptions& o) { o.ssh = " "; }},
      {"--launcher srun works inside a Slurm job only",
       [](LaunchOptions& o) { o.launcher = "srun"; }},
      {"--spares 1 leaves 0 of 1 node to train on, but at least 1 must train",
       [](LaunchOptions& o) { o.spares = 1; }},
      {"--spares 5 leaves 0 of 2 nodes to train on, but at least 1 must train",
       [](LaunchOptions& o) {
         o.local = 2;
         o.spares = 5;
       }},
      {"--spares 1 leaves 2 of 3 nodes to train on, but at least 3 must train",
       [](LaunchOptions& o) {
         o.local = 3;
         o.spares = 1;
         o.min_nodes = 3;
       }},
      {"the number of ranks, 2, is not",
       [](LaunchOptions& o) {
         o.local = 2;
         o.run.emplace_back("parallel.dp=3");
       }},
      {"'x'", [](LaunchOptions& o) { o.ports = "x"; }}};
  const LaunchOptions sound = options_;
  for (const Case& wrong : cases) {
    options_ = sound;
    wrong.change(options_);
    EXPECT_THAT(complaint(), HasSubstr(wrong.words)) << wrong.words;
  }
  options_ = sound;
  options_.local = 3;
  options_.spares = 1;
  options_.min_nodes = 2;
  EXPECT_EQ(plan().course.nodes_wanted, 2);
}

TEST_F(LaunchPlanTest, RootNeedsPermissionOfMpirun) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mpirun refuses only root: run as root";
  }
  variables_.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", std::nullopt);
  EXPECT_THAT(complaint(), AllOf(HasSubstr("mpirun refuses to run as root: "),
                                 HasSubstr("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")));
  options_.launcher_arguments = {"--allow-run-as-root"};
  EXPECT_THAT(plan().setting.launcher_arguments, ElementsAre("--allow-run-as-root"));
  options_.launcher_arguments.clear();
  enter_job();
  options_.launcher = "srun";
  EXPECT_EQ(plan().setting.starter, Starter::srun);
}

}  // namespace
}  // namespace trireme
