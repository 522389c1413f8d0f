// Runs all operations at once, each in a group of its own and again and again, until one rank kills
// or stops itself in the middle of them; faults_test.py watches.
//   fault_ranks BACKEND kill|stop VICTIM DEADLINE_SECONDS FOLDER
// Each rank writes FOLDER/rank-N: a line for each operation, what went wrong there and when (ns of
// the host's monotonic clock); the victim, when it ends.
//
// With `hierarchical`, the host counts as two: the first half of the ranks is on "a", the others on
// "b".
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/hierarchy/hierarchical_transport.h"
#include "mpi/session/mpi_session.h"
#include "mpi/session/mpi_transport.h"
#include "mpi/shm/shm_transport.h"
#include "mpi/ucx/ucx_transport.h"
#include "src/base/philox.h"
#include "tests/mpi/faults/fault_operations.h"

namespace trireme {
namespace {

struct Plan {
  std::string backend;
  bool kills = false;
  int victim = 0;
  std::chrono::duration<double> deadline{};
  std::string folder;
};

// Holds a communicator over all ranks, and the one that it was made with.
struct World {
  std::unique_ptr<Communicator> control;
  std::unique_ptr<Communicator> all;
};

World make_two_hosts(MpiSession& session) {
  const int size = session.world().size();
  const int rank = session.world().rank();
  std::vector<std::string> hosts;
  for (int r = 0; r < size; ++r) {
    hosts.emplace_back(r < size / 2 ? "a" : "b");
  }
  World world;
  world.control = std::make_unique<QueuedCommunicator>(make_mpi_transport(hosts), "control");
  const auto host_group = world.control->split(rank < size / 2 ? 0 : 1, 0, "host");
  auto local = make_shm_transport(*host_group);
  Watch watch = session.watch();
  watch.group = mix64(1);  // unlike that of the session's own world
  world.all = std::make_unique<QueuedCommunicator>(
      make_hierarchical_transport(std::move(local), make_ucx_transport(*world.control)), "world",
      kDefaultDeadline, watch);
  return world;
}

World make_world(MpiSession& session, const std::string& backend) {
  if (backend == "hierarchical") {
    return make_two_hosts(session);
  }
  return {nullptr, session.make_world(parse_backend(backend))};
}

class Report {
 public:
  Report(const std::string& folder, int rank) : file_(fmt::format("{}/rank-{}", folder, rank)) {}
  void add(std::string_view name, std::string_view kind, std::string_view text) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::lock_guard lock(mutex_);
    file_ << fmt::format("{}\t{}\t{}\t{}\n", name, std::chrono::nanoseconds(now).count(), kind,
                         text)
          << std::flush;
    count_.fetch_add(1);
  }
  std::size_t count() const { return count_.load(); }

 private:
  std::mutex mutex_;
  std::ofstream file_;
  std::atomic<std::size_t> count_ = 0;
};

// All ranks meet between the rounds that connect everybody and those that are disturbed.
struct Meeting {
  std::latch connected;
  std::latch go{1};
};

// Runs one operation in a group of its own. Its buffers live on after an error, because a stopped
// victim, which mpirun continues in order to end it, may still access them.
struct Life {
  Life(const FaultCase& fault_case, Communicator& world, int hub)
      : name(fault_case.name), group(world.split(0, 0, name)), operation(fault_case, *group, hub) {}
  void run(const Plan& plan, Meeting& meeting, Report& report);

  std::string name;
  std::unique_ptr<Communicator> group;
  FaultOperation operation;
  std::atomic<int> rounds = 0;  // operations since the meeting
};

void Life::run(const Plan& plan, Meeting& meeting, Report& report) {
  try {
    for (int i = 0; i < 3; ++i) {
      operation.run();
    }
    meeting.connected.count_down();
    meeting.go.wait();
    group->set_deadline(plan.deadline);
    for (;;) {
      operation.run();
      rounds.fetch_add(1);
    }
  } catch (const Error& error) {
    report.add(name, error.kind(), error.what());
  }
}

// Ends this rank in the middle of all operations, once each has run some times undisturbed.
[[noreturn]] void end_oneself(const Plan& plan, const std::vector<std::unique_ptr<Life>>& lives,
                              Report& report) {
  constexpr int kUndisturbed = 3;
  for (const auto& each : lives) {
    while (each->rounds.load() < kUndisturbed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  report.add("end", "", "");
  (void)::kill(::getpid(), plan.kills ? SIGKILL : SIGSTOP);
  for (;;) {
    ::pause();
  }
}

// Waits until all operations that have something to report have done so. Over UCX, a rank without a
// connection to the dead one learns of its death when the others end the job.
void wait_for_words(const Report& report, std::size_t expected) {
  constexpr std::chrono::milliseconds kMoment{20};
  for (int after = 0; after<100; after += report.count()> 0 ? 1 : 0) {
    if (report.count() == expected) {
      after = std::max(after, 50);
    }
    std::this_thread::sleep_for(kMoment);
  }
}

void run(const Plan& plan, MpiSession& session) {
  World world = make_world(session, plan.backend);
  Report report(plan.folder, world.all->rank());
  std::vector<std::unique_ptr<Life>> lives;
  for (const FaultCase& each :
       operations_to_disturb(plan.backend == "shm" || plan.backend == "hierarchical")) {
    lives.push_back(std::make_unique<Life>(each, *world.all, plan.victim));
  }
  Meeting meeting{std::latch(static_cast<std::ptrdiff_t>(lives.size()))};
  std::vector<std::thread> threads;
  for (const auto& each : lives) {
    threads.emplace_back([&] { each->run(plan, meeting, report); });
  }
  meeting.connected.wait();
  world.all->barrier().wait();
  meeting.go.count_down();
  if (world.all->rank() == plan.victim) {
    end_oneself(plan, lives, report);
  }
  wait_for_words(report, lives.size());
  session.abort(ExitCode::hang);
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc != 6) {
    return 2;
  }
  const trireme::Plan plan{argv[1], std::string(argv[2]) == "kill", std::atoi(argv[3]),
                           std::chrono::duration<double>(std::atof(argv[4])), argv[5]};
  // mpirun asks the other ranks to end as soon as one is killed; ranks that notice the death
  // themselves continue.
  if (plan.backend != "mpi") {
    (void)std::signal(SIGTERM, SIG_IGN);
  }
  trireme::MpiSession session;
  session.recorder().set_dump_folder(plan.folder);
  try {
    trireme::run(plan, session);
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "{}: rank {}: {}\n", error.kind(), session.place().rank, error.what());
    session.abort(error.exit_code());
  }
}
