// Hangs as its argument says, to be watched by hanging_ranks_test.py; the second argument is the
// folder for the dumps:
//   absent           the last rank sits in data_load and never comes to the meeting
//   stopped          the last rank stops itself (SIGSTOP) before the meeting
//   stopped_at_start the last rank stops itself before MPI is there
//   desync           the last rank runs another operation
// Deadline: 2 s.
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "mpi/session/backend.h"
#include "mpi/session/mpi_session.h"

namespace trireme {
namespace {

void live(MpiSession& session, const std::string& how) {
  Communicator& world = session.world();
  const bool last = world.rank() == world.size() - 1;
  session.recorder().enter_phase("train");
  const auto group = world.split(0, 0, "dp");
  group->barrier().wait();
  // A group of another world with operations of the same numbers, which is not to be taken for it.
  const auto other_world = session.make_world(parse_backend("mpi"));
  const auto other = other_world->split(0, 0, "other");
  for (int i = 0; i < 2; ++i) {
    other->barrier().wait();
  }
  group->set_deadline(std::chrono::seconds(2));
  std::vector<float> data(70000);
  if (last && how == "absent") {
    session.recorder().enter_phase("data_load");
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
  if (last && how == "stopped") {
    ::raise(SIGSTOP);
  }
  if (last && how == "desync") {
    group->broadcast({data.data(), 70000, DType::f32}, 0).wait();
  }
  group->all_reduce({data.data(), 70000, DType::f32}, ReduceOp::sum).wait();
}

bool is_last_before_start() {
  const std::string rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return std::stoi(rank) + 1 == std::stoi(std::getenv("OMPI_COMM_WORLD_SIZE"));
}

}  // namespace
}  // namespace trireme

int main(int, char** argv) {
  const std::string how = argv[1];
  if (how == "stopped_at_start" && trireme::is_last_before_start()) {
    ::raise(SIGSTOP);
  }
  trireme::MpiSession session;
  session.recorder().set_dump_folder(argv[2]);
  try {
    trireme::live(session, how);
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "rank {}: {}\n", session.place().rank, error.what());
    session.abort(error.exit_code());
  }
  return 0;
}
