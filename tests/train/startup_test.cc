#include "src/train/start/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A node's own file and environment.
LoadedConfig config_of_node(const TempFolder& folder, const std::string& lr,
                            const char* const* environment) {
  const auto file = folder.path() / "run.yaml";
  write_file_durably(file, "model: {preset: gpt2-124m}\noptimizer: {lr: " + lr +
                               "}\ndata: {train: d}\ntrain: {steps: 5, global_batch: 8}\n"
                               "run: {dir: r}\n");
  return load_run_config({.file = file, .arguments = {}, .environment = environment, .site = {}});
}

TEST(CheckSameConfig, AsksForTheSameValuesWhereverTheyCameFrom) {
  ThreadWorld(3).run([](Communicator& comm) {
    const TempFolder own;
    const std::array<const char*, 2> environment = {
        comm.rank() == 1 ? "TRIREME_OPTIMIZER__LR=0.001" : nullptr, nullptr};
    const std::string in_file = comm.rank() == 1 ? "0.5" : "0.001";
    check_same_config(comm, config_of_node(own, in_file, environment.data()));
  });
}

TEST(CheckSameConfig, NamesKeyRankAndHost) {
  ThreadWorld(3, {"a", "b", "c"}).run([](Communicator& comm) {
    const TempFolder own;
    const LoadedConfig loaded = config_of_node(own, comm.rank() == 1 ? "0.002" : "0.001", nullptr);
    EXPECT_THAT(
        message_of<ConfigError>([&] { check_same_config(comm, loaded); }),
        AllOf(HasSubstr("rank 1 (b)"), HasSubstr("optimizer.lr is 0.002"), HasSubstr("run.yaml:2"),
              HasSubstr("0.001 on rank 0"), Not(HasSubstr("rank 2"))));
  });
}

TEST(CheckSameConfig, FindsAVariableThatWasNotForwarded) {
  ThreadWorld(2).run([](Communicator& comm) {
    const TempFolder own;
    const std::array<const char*, 2> environment = {
        comm.rank() == 0 ? "TRIREME_TRAIN__STEPS=9" : nullptr, nullptr};
    const LoadedConfig loaded = config_of_node(own, "0.001", environment.data());
    EXPECT_THAT(message_of<ConfigError>([&] { check_same_config(comm, loaded); }),
                AllOf(HasSubstr("train.steps is 5"), HasSubstr("9 on rank 0")));
  });
}

TEST(CheckSameBuild, RefusesAnotherProgramWhereBitsArePromised) {
  const TempFolder folder;
  ThreadWorld(3, {"a", "b", "c"}).run([&](Communicator& comm) {
    Log log({.rank = comm.rank(), .ranks = 3, .folder = folder.path()});
    const std::string build = comm.rank() == 2 ? "version 2" : "version 1";
    EXPECT_THAT(message_of<ConfigError>([&] { check_same_build(comm, build, "layout", log); }),
                AllOf(HasSubstr("rank 2 (c) runs version 2"), HasSubstr("rank 0 (a)")));
    EXPECT_NO_THROW(check_same_build(comm, build, "fast", log));
    EXPECT_NO_THROW(check_same_build(comm, "version 1", "elastic", log));
  });
  EXPECT_THAT(read_file(log_file(folder.path(), 0)), HasSubstr("the same build on all nodes"));
}

TEST(CheckSameKernels, RefusesOtherInstructionSetsWhereBitsArePromised) {
  ThreadWorld(2, {"a", "b"}).run([&](Communicator& comm) {
    const std::string kernels = comm.rank() == 1 ? "avx2" : "avx512";
    EXPECT_THAT(message_of<ConfigError>([&] { check_same_kernels(comm, kernels, "elastic"); }),
                AllOf(HasSubstr("rank 1 (b) with avx2"), HasSubstr("TRIREME_KERNELS=avx2")));
    EXPECT_NO_THROW(check_same_kernels(comm, kernels, "fast"));
  });
}

}  // namespace
}  // namespace trireme
