// Runs one collective operation over UCX again and again, until the last rank ends or stops itself
// in the middle of one, or something else goes wrong; fault_test.sh watches.
//   fault_ranks kill|stop|none all_reduce|small|broadcast|all_to_all|barrier DEADLINE_SECONDS
#include <csignal>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/session/mpi_session.h"
#include "mpi/ucx/ucx_transport.h"

namespace trireme {
namespace {

struct Buffers {
  explicit Buffers(int ranks)
      : data(static_cast<std::size_t>(ranks) * 300000, 1.0F),
        other(data),
        counts(static_cast<std::size_t>(ranks), 300000) {}
  static View view(std::vector<float>& values, std::int64_t n) {
    return {values.data(), n, DType::f32, Device{}};
  }
  std::vector<float> data;
  std::vector<float> other;
  std::vector<std::int64_t> counts;
};

Pending start(Communicator& comm, const std::string& operation, Buffers& buffers) {
  const auto all = static_cast<std::int64_t>(buffers.data.size());
  const View data = Buffers::view(buffers.data, all);
  if (operation == "all_reduce") {
    return comm.all_reduce(data, ReduceOp::max);
  }
  if (operation == "small") {
    return comm.all_reduce(data.slice(0, 10), ReduceOp::max);
  }
  if (operation == "broadcast") {
    return comm.broadcast(data, comm.size() - 1);
  }
  if (operation == "all_to_all") {
    return comm.all_to_all(data, buffers.counts, Buffers::view(buffers.other, all), buffers.counts);
  }
  return comm.barrier();
}

std::vector<int> all_ranks(const Communicator& comm) {
  std::vector<int> ranks;
  for (int r = 0; r < comm.size(); ++r) {
    ranks.push_back(r);
  }
  return ranks;
}

// Leaves with an error, at the latest when the deadline has passed.
void live(Communicator& mpi, const std::string& fault, const std::string& operation,
          double deadline) {
  QueuedCommunicator comm(make_ucx_transport(mpi, all_ranks(mpi)), "world");
  comm.set_deadline(std::chrono::duration<double>(deadline));
  Buffers buffers(comm.size());
  for (int i = 0;; ++i) {
    Pending pending = start(comm, operation, buffers);
    if (i == 30 && comm.rank() == comm.size() - 1 && fault != "none") {
      (void)::kill(::getpid(), fault == "kill" ? SIGKILL : SIGSTOP);
    }
    pending.wait();
  }
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  // mpirun asks the others to end as soon as one is killed; two seconds later it makes them.
  (void)std::signal(SIGTERM, SIG_IGN);
  trireme::MpiSession session;
  try {
    trireme::live(session.world(), argv[1], argv[2], std::atof(argv[3]));
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "{}: rank {}: {}\n", error.kind(), session.place().rank, error.what());
    session.abort(error.exit_code());
  }
}
