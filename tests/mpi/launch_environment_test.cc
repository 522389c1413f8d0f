#include "mpi/launch_environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

EnvironmentLookup lookup_in(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

Launcher launcher_of(const Variables& variables) { return detect_launcher(lookup_in(variables)); }

std::string refusal(const Variables& variables) {
  try {
    launcher_of(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LaunchEnvironment, KnowsItsLaunchers) {
  EXPECT_EQ(launcher_of({}), Launcher::alone);
  EXPECT_EQ(launcher_of({{"PMIX_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), Launcher::mpirun);
  EXPECT_EQ(
      launcher_of({{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}),
      Launcher::srun);
  // mpirun runs inside a Slurm step of several daemons.
  EXPECT_EQ(launcher_of({{"PMIX_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "2"}}),
            Launcher::mpirun);
}

TEST(LaunchEnvironment, KnowsHowSoonMpirunKills) {
  const auto seconds = [](const Variables& variables) {
    return seconds_until_killed(lookup_in(variables));
  };
  EXPECT_EQ(seconds({{"OMPI_COMM_WORLD_RANK", "0"}}), 2);
  EXPECT_EQ(seconds({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_MCA_odls_base_sigkill_timeout", "30"}}),
            60);
  EXPECT_GT(seconds({{"OMPI_COMM_WORLD_RANK", "0"}, {"TRIREME_LAUNCH_ID", "ab"}}), 1e9);
  EXPECT_GT(seconds({}), 1e9);
}

TEST(LaunchEnvironment, OneTaskNeedsNoConnection) {
  EXPECT_EQ(launcher_of({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}}), Launcher::alone);
  EXPECT_EQ(launcher_of({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), Launcher::alone);
  EXPECT_EQ(launcher_of({{"PMI_SIZE", "1"}}), Launcher::alone);
  EXPECT_EQ(launcher_of({{"PMI_SIZE", "many"}}), Launcher::alone);
}

TEST(LaunchEnvironment, SeveralUnconnectedTasksAreRefused) {
  EXPECT_THAT(
      refusal({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}),
      AllOf(HasSubstr("4 tasks without PMIx"), HasSubstr("srun --mpi=pmix"), HasSubstr("mpirun")));
  EXPECT_THAT(refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}),
              AllOf(HasSubstr("PMI_SIZE=2"), HasSubstr("Open MPI")));
}

}  // namespace
}  // namespace trireme
