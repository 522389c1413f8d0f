#include "src/train/start/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/thread/thread_world.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the configuration of a node that has a file and an environment of its own.
LoadedConfig config_of_node(const TempFolder& folder, const std::string& lr,
                            const char* const* environment) {
  const auto file = folder.path() / "run.yaml";
  write_file_durably(file, "model: {preset: gpt2-124m}\noptimizer: {lr: " + lr +
                               "}\ndata: {train: d}\ntrain: {steps: 5, global_batch: 8}\n"
                               "run: {dir: r}\n");
  return load_run_config({.file = file, .arguments = {}, .environment = environment, .site = {}});
}

TEST(Switches, AMisspeltOneIsNamed) {
  const std::array<const char*, 8> environment = {"TRIREME_KERNEL=avx2",   "TRIREME_KERNELS=avx2",
                                                  "TRIREME_TRAIN__STEP=5", "TRIREME_HOME=/opt",
                                                  "TRIREME_SITEDIR=/x",    "KERNEL=1",
                                                  "TRIREME_NODE_DIR=",     nullptr};
  EXPECT_THAT(misspelt_switches(environment.data()),
              testing::ElementsAre(AllOf(HasSubstr("environment TRIREME_KERNEL:"),
                                         HasSubstr("did you mean TRIREME_KERNELS?")),
                                   HasSubstr("did you mean TRIREME_SITE_DIR?")));
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
    const auto build_with = [](const char* version) {
      return nlohmann::json{{"program", "x"}, {"with", {{"hdf5", version}, {"mpi", "4"}}}};
    };
    const nlohmann::json build = build_with(comm.rank() == 2 ? "1.14" : "1.10");
    EXPECT_THAT(message_of<ConfigError>([&] { check_same_build(comm, build, "layout", log); }),
                HasSubstr("rank 0 (a) has hdf5 1.10, but rank 2 (c) has hdf5 1.14: "));
    EXPECT_NO_THROW(check_same_build(comm, build, "fast", log));
    EXPECT_NO_THROW(check_same_build(comm, build_with("1.10"), "elastic", log));
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

// Returns what one rank logs while `work` runs.
template <class Work>
std::string log_of(const Work& work) {
  const TempFolder folder;
  {
    Log log({.terminal_level = LogLevel::error, .folder = folder.path()});
    work(log);
  }
  return read_file(log_file(folder.path(), 0));
}

RankPlace place_with(int cores, int sharers, int local_size = 1, const std::string& numa = "0") {
  RankPlace place;
  place.local_size = local_size;
  place.sharers = sharers;
  place.binding.cores = cores;
  place.binding.numa_nodes = numa;
  return place;
}

TEST(WarnOfBindings, CountsRanksThatShareTooFewCores) {
  const auto warnings = [](const std::vector<RankPlace>& places, int threads) {
    return log_of([&](Log& log) { warn_of_bindings(places, threads, log); });
  };
  EXPECT_THAT(warnings({place_with(4, 2), place_with(4, 2)}, 2), Not(HasSubstr("warning")));
  EXPECT_THAT(
      warnings({place_with(4, 2), place_with(4, 2)}, 3),
      HasSubstr("2 ranks have too few cores (3 threads per rank; on the first host, 2 ranks "
                "on 4 cores)"));
  EXPECT_THAT(warnings({place_with(4, 1), place_with(3, 1)}, 4),
              HasSubstr("1 rank has too few cores (4 threads per rank; on the first host, 1 rank "
                        "on 4 cores)"));
}

TEST(WarnOfBindings, SeveralRanksOfAHostBelongOnOneNumaNodeEach) {
  const auto warnings = [](const std::vector<RankPlace>& places) {
    return log_of([&](Log& log) { warn_of_bindings(places, 1, log); });
  };
  EXPECT_THAT(warnings({place_with(8, 1, 1, "0-1")}), Not(HasSubstr("NUMA")))
      << "a rank may have a host for itself";
  EXPECT_THAT(warnings({place_with(8, 1, 2, "0-1"), place_with(8, 1, 2, "1")}),
              HasSubstr("1 rank is not bound to one NUMA node"));
  EXPECT_THAT(warnings({place_with(8, 1, 2, "0,2"), place_with(8, 1, 2, "0-3")}),
              HasSubstr("2 ranks are not bound to one NUMA node"));
}

TEST(AnnounceRun, SaysWhatIsTrained) {
  const auto line = [](int ranks, std::int64_t from) {
    RunConfig config;
    config.run_dir = "runs/a";
    config.model.layers = 12;
    config.model.hidden = 768;
    config.model.heads = 12;
    config.model.vocab = 50257;
    config.model.context = 1024;
    config.model.complete();
    config.data.sequence = 512;
    config.train.steps = 100;
    config.train.global_batch = 8;
    config.train.batch_ramp = {from, from, from == 0 ? 0 : 10};
    return log_of([&](Log& log) { announce_run(config, ranks, log); });
  };
  EXPECT_THAT(line(1, 0), HasSubstr("runs/a: 124.4M parameters, 100 steps of 8 x 512 tokens, 1 "
                                    "rank\""));
  EXPECT_THAT(line(2, 0), AllOf(HasSubstr("tokens, 2 ranks\""), Not(HasSubstr("batch ramp")),
                                HasSubstr("preparing: connecting ranks")));
  EXPECT_THAT(line(2, 4), HasSubstr("batch ramp: 4 sequences at first, 8 from step 11 on"));
}

TEST(LogRanks, EveryRankHasAnEventAndEveryHostALine) {
  const TempFolder folder;
  ThreadWorld(3, {"a", "b", "b"}).run([&](Communicator& comm) {
    std::vector<RankPlace> places(3);
    for (int rank = 0; rank < 3; ++rank) {
      RankPlace& place = places[static_cast<std::size_t>(rank)];
      place.rank = rank;
      place.host = comm.host(rank);
      place.binding = {2, fmt::format("{}-{}", 2 * rank, 2 * rank + 1), "0", "0"};
    }
    complete_places(places);
    Log log({.rank = comm.rank(),
             .ranks = 3,
             .terminal_level = LogLevel::error,
             .folder = folder.path()});
    log_ranks(places, comm, 2, "avx2", log);
  });
  const std::string first = read_file(log_file(folder.path(), 0));
  EXPECT_THAT(first, AllOf(HasSubstr("host a: "), HasSubstr("host b: ")));
  EXPECT_EQ(first.find("host b: "), first.rfind("host b: ")) << "once, though it has two ranks";
  const std::string last = read_file(log_file(folder.path(), 2));
  EXPECT_THAT(last, AllOf(HasSubstr(R"("cpus":"4-5")"), HasSubstr(R"("kernels":"avx2")"),
                          HasSubstr(R"("threads":2)"), Not(HasSubstr("host b: "))));
}

}  // namespace
}  // namespace trireme
