// Ends as its argument says, to be watched by ending_test.sh:
//   clean      all ranks meet and end
//   abort      the last rank catches an error inside the session's scope and aborts with its code
//   unwind     the last rank's error leaves the session's scope
//   hang       the last rank never comes to the meeting
#include <string>
#include <thread>

#include <fmt/core.h>

#include "mpi/session/mpi_session.h"

namespace trireme {
namespace {

void live(MpiSession& session, const std::string& how) {
  Communicator& world = session.world();
  const bool last = world.rank() == world.size() - 1;
  world.barrier().wait();
  if (last && (how == "abort" || how == "unwind")) {
    throw DataError("shard 3 is damaged");
  }
  if (last && how == "hang") {
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
  world.set_deadline(std::chrono::seconds(how == "hang" ? 1 : 60));
  all_reduce_value(world, 1.0, ReduceOp::sum);
}

int run_inside(const std::string& how) {
  MpiSession session;
  if (how == "unwind") {
    live(session, how);
    return 0;
  }
  try {
    live(session, how);
  } catch (const Error& error) {
    fmt::print(stderr, "rank {}: {}\n", session.place().rank, error.what());
    session.abort(error.exit_code());
  }
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  try {
    return trireme::run_inside(argc > 1 ? argv[1] : "clean");
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "outside: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
