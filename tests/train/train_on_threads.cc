// train_on_threads RANKS CONFIG [KEY=VALUE ...] runs the training of `trireme train` with ranks
// that are threads of this process, for tests that compare transports.
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "mpi/thread/thread_world.h"
#include "src/train/training.h"

namespace trireme {
namespace {

void train(ThreadWorld& world, Communicator& comm, const RunConfig& config, const StopFlag& stop) {
  std::vector<RankPlace> places;
  for (int rank = 0; rank < comm.size(); ++rank) {
    RankPlace place;
    place.rank = rank;
    place.host = comm.host(rank);
    places.push_back(std::move(place));
  }
  Log log({.rank = comm.rank(),
           .ranks = comm.size(),
           .host = comm.host(comm.rank()),
           .folder = config.run_dir / "logs"});
  RunStatus status;
  Training training(config, {.world = comm,
                             .data = comm,
                             .device = Device::cpu(),
                             .places = places,
                             .recorder = world.recorder(comm.rank()),
                             .log = log,
                             .stop = stop,
                             .status = status});
  (void)training.run();
}

int run(int ranks, const std::string& file, std::vector<std::string> arguments) {
  const LoadedConfig loaded =
      load_run_config({.file = file, .arguments = std::move(arguments), .site = {}});
  const auto lock = RunDirectory(loaded.config.run_dir).take();
  const StopFlag stop;
  ThreadWorld world(ranks);
  world.run([&](Communicator& comm) { train(world, comm, loaded.config, stop); });
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: train_on_threads RANKS CONFIG [KEY=VALUE ...]\n");
    return 2;
  }
  try {
    return trireme::run(std::atoi(argv[1]), argv[2], {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
