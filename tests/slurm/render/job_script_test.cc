#include "slurm/render/job_script.h"

#include <csignal>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kSource = TRIREME_SOURCE_DIR;

SiteProfile site(const std::string& name) {
  return load_site_profile(kSource / "configs/site" / (name + ".yaml"));
}

JobRequest a_run() {
  JobRequest request;
  request.name = "first";
  request.command = "trireme slurm render run.yaml --cluster cpu.yaml";
  request.folder = "/data/project";
  request.run_dir = "runs/first";
  request.config = "run.yaml";
  request.arguments = {"train.steps=1000"};
  request.nodes = 2;
  request.step_seconds = 5;
  request.save_seconds = 40;
  return request;
}

// Compares the script with tests/slurm/render/golden/NAME.sbatch. If TRIREME_WRITE_GOLDEN=1 is set,
// it writes that file first, to be read and committed.
void expect_golden(const std::string& name, const std::string& script) {
  const std::filesystem::path file = kSource / "tests/slurm/render/golden" / (name + ".sbatch");
  if (std::getenv("TRIREME_WRITE_GOLDEN") != nullptr) {
    write_file_durably(file, script);
  }
  EXPECT_EQ(script, read_file(file)) << name;
}

void expect_clean(const std::string& script) {
  const TempFolder folder;
  const std::string file = (folder.path() / "job.sbatch").string();
  write_file_durably(file, script);
  const CommandResult bash = run_command({"bash", "-n", file}, std::chrono::seconds(60));
  EXPECT_TRUE(bash.good()) << bash.errors << script;
  const CommandResult check = run_command({"shellcheck", file}, std::chrono::seconds(120));
  if (check.code != 127) {
    EXPECT_TRUE(check.good()) << check.output << script;
  }
}

TEST(JobScript, RequestsGpusInTheSitesWay) {
  SiteProfile profile = site("gpu");
  profile.node.gpu_type = "1g.10gb";
  profile.node.gpu_request = "gres";
  profile.launch.gpu_bind = "single:1";
  const std::string gres = render_job(profile, a_run());
  EXPECT_THAT(gres, AllOf(HasSubstr("#SBATCH --gres=gpu:1g.10gb:4\n"),
                          HasSubstr("#SBATCH --constraint=a100\n"),
                          HasSubstr("--cpu-bind=cores \\\n  --gpu-bind=single:1 \"$program\"")));
  expect_clean(gres);
  profile.node.gpu_request = "per-task";
  profile.node.gpu_type = "";
  JobRequest request = a_run();
  request.supervised = true;
  const std::string supervised = render_job(profile, request);
  EXPECT_THAT(supervised, AllOf(HasSubstr("#SBATCH --gpus-per-task=1\n"),
                                HasSubstr("--launcher-arg=--gpu-bind=single:1")));
  profile.node.gpu_request = "mps";
  profile.node.mps_shares = 50;
  EXPECT_THAT(render_job(profile, request), HasSubstr("#SBATCH --gres=mps:50\n"));
  profile.node.gpus = 0;
  EXPECT_THAT(render_job(profile, request), AllOf(Not(HasSubstr("--gpus")), Not(HasSubstr("mps"))));
}

TEST(JobScript, ShellcheckIsThere) {
  if (run_command({"shellcheck", "--version"}, std::chrono::seconds(60)).code == 127) {
    GTEST_SKIP()
        << "shellcheck is missing, so that scripts are only parsed by bash: run ./dev install-deps";
  }
}

TEST(JobScript, CpuNodes) {
  const std::string script = render_job(site("cpu"), a_run());
  expect_golden("cpu", script);
  expect_clean(script);
}

TEST(JobScript, GpuNodesChainedBySrun) {
  const std::string script = render_job(site("gpu"), a_run());
  expect_golden("gpu", script);
  expect_clean(script);
  EXPECT_THAT(script, Not(HasSubstr("scontrol requeue")));
}

TEST(JobScript, Supervised) {
  JobRequest request = a_run();
  request.spares = 1;
  const std::string script = render_job(site("cpu"), request);
  expect_golden("supervised", script);
  expect_clean(script);
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=3\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --no-kill\n"));
}

// Runs a supervised script outside Slurm, with a program that only ends with this code. Every
// attempt to requeue the job fails.
CommandResult run_supervised_job(int program_code) {
  const TempFolder folder;
  const auto put = [&](const char* name, const std::string& text) {
    const std::filesystem::path path = folder.path() / name;
    write_file_durably(path, text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  };
  put("scontrol", "#!/bin/sh\nexit 1\n");
  put("sleep", "#!/bin/sh\n");
  SiteProfile profile = site("cpu");
  profile.environment.modules.clear();
  profile.environment.program = put("program", fmt::format("#!/bin/sh\nexit {}\n", program_code));
  profile.node.scratch.clear();
  JobRequest request = a_run();
  request.spares = 1;
  request.folder = folder.path();
  const std::string script = put("job.sh", render_job(profile, request));
  return run_command({"env", "PATH=" + folder.path().string() + ":/usr/bin:/bin", "SLURM_JOB_ID=1",
                      "SLURM_JOB_NODELIST=n1", "bash", script},
                     std::chrono::seconds(60));
}

TEST(JobScript, ASecondSignalEndsASupervisedJobAndAKillDoesNot) {
  const CommandResult stopped = run_supervised_job(128 + SIGUSR2);
  EXPECT_EQ(stopped.code, 128 + SIGUSR2);
  EXPECT_THAT(stopped.errors, AllOf(HasSubstr("a second signal"), Not(HasSubstr("requeue"))));
  const CommandResult killed = run_supervised_job(128 + SIGKILL);
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  EXPECT_THAT(killed.errors, HasSubstr("could not be requeued"));
}

TEST(JobScript, Arrays) {
  JobRequest request = a_run();
  request.nodes = 1;
  request.tasks = {{"optimizer.lr=1e-3"}, {"optimizer.lr=3e-4"}};
  request.tasks_at_once = 1;
  const std::string script = render_job(site("cpu"), request);
  expect_golden("array", script);
  expect_clean(script);
}

TEST(JobScript, EveryProfileGivesACleanScript) {
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs/site")) {
    expect_clean(render_job(load_site_profile(entry.path()), a_run()));
  }
}

// The script's own bash must see the words of the command unchanged.
TEST(JobScript, HostileNamesStayNames) {
  const TempFolder folder;
  const std::string mark = (folder.path() / "ran").string();
  const std::string evil =
      "x'; touch " + mark + "; $(touch " + mark + ") `touch " + mark + "` \"\n#\\";
  JobRequest request = a_run();
  request.name = request.command = request.config = evil;
  request.folder = folder.path();
  request.run_dir = evil;
  request.arguments = {evil, "run.name=" + evil};
  request.tasks = {{"a=" + evil}};
  SiteProfile profile = site("cpu");
  profile.environment.modules.clear();
  profile.environment.variables = {"EVIL=" + evil};
  profile.environment.program = evil;
  const std::string script = render_job(profile, request);
  expect_clean(script);
  // Keep the part of the script before the ranks are started.
  const std::string setup = script.substr(0, script.find("# USR1 comes"));
  const std::string file = (folder.path() / "job.sh").string();
  write_file_durably(file, setup + "\nprintf '%s|' \"$program\" \"${arguments[@]}\" \"$EVIL\"\n");
  ::setenv("SLURM_ARRAY_TASK_ID", "0", 1);
  ::setenv("SLURM_JOB_ID", "1", 1);
  const CommandResult bash = run_command({"bash", file}, std::chrono::seconds(60));
  ::unsetenv("SLURM_ARRAY_TASK_ID");
  ::unsetenv("SLURM_JOB_ID");
  const std::string last = "run.dir=" + task_folder(evil, 0, request.tasks[0]).string();
  EXPECT_EQ(bash.output, evil + "|train|" + evil + "|" + evil + "|run.name=" + evil + "|a=" + evil +
                             "|" + last + "|" + evil + "|")
      << bash.errors;
  EXPECT_FALSE(std::filesystem::exists(mark));
  for (std::size_t at = script.find("#SBATCH"); at != std::string::npos;
       at = script.find("#SBATCH", at + 1)) {
    EXPECT_TRUE(at == 0 || script[at - 1] == '\n');
    EXPECT_EQ(script.substr(at, script.find('\n', at) - at).find("touch "), std::string::npos);
  }
}

TEST(JobScript, SignalBeforeTheEnd) {
  EXPECT_EQ(signal_seconds(0, 0), 90);
  EXPECT_EQ(signal_seconds(5, 40), 180);
  EXPECT_EQ(signal_seconds(0.3, 0), 91);
  EXPECT_THAT(render_job(site("cpu"), a_run()), HasSubstr("--signal=B:USR1@180\n"));
}

TEST(JobScript, WhatDoesNotFit) {
  JobRequest request = a_run();
  request.save_seconds = 40000;
  EXPECT_THAT(message_of<ConfigError>([&] { render_job(site("cpu"), request); }),
              HasSubstr("before its end"));
  request = a_run();
  request.time = "3";
  EXPECT_THAT(message_of<ConfigError>([&] { render_job(site("cpu"), request); }),
              HasSubstr("time limit is 3 (180 s)"));
  request.time = "soon\n#SBATCH --uid=0";
  EXPECT_THROW(render_job(site("cpu"), request), ConfigError);
  request = a_run();
  request.tasks = {{"a=1"}};
  EXPECT_THAT(message_of<ConfigError>([&] { render_job(site("gpu"), request); }),
              HasSubstr("array"));
  request.tasks.resize(1001);
  EXPECT_THROW(render_job(site("cpu"), request), ConfigError);
}

}  // namespace
}  // namespace trireme
