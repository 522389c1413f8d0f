#include "mpi/session/mpi_session.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include <dlfcn.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include "mpi/collective/queued_communicator.h"
#include "mpi/self_communicator.h"
#include "mpi/session/fabric_settings.h"
#include "mpi/session/mpi_check.h"
#include "mpi/session/mpi_transport.h"
#include "mpi/session/start_alarm.h"
#include "mpi/session/world_factory.h"
#include "src/base/log.h"
#include "src/base/node_name.h"
#include "src/base/philox.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kLastWords{1};

// Returns the number of processes that the launcher says it started, or 0 if it does not say.
int promised_size() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size == nullptr ? 0 : static_cast<int>(std::strtol(size, nullptr, 10));
}

// Returns "rank 3 (host n2)" before MPI is there to ask.
std::string name_before_start() {
  const char* const rank = std::getenv("PMIX_RANK");
  return fmt::format("rank {} (host {})", rank == nullptr ? "?" : rank, host_name());
}

int own_rank() {
  int rank = 0;
  mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return rank;
}

void start_mpi() {
  int provided = 0;
  mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw ConfigError(
        "this MPI library does not provide MPI_THREAD_MULTIPLE, which trireme needs: use an Open "
        "MPI that was built with thread support (Debian's is)");
  }
  int size = 0;
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (promised_size() > 1 && size != promised_size()) {
    throw ConfigError(
        fmt::format("mpirun started {} processes, but this MPI library connects only {}: mpirun "
                    "and the library belong to different MPI installations (compare 'mpirun "
                    "--version' with 'trireme --version')",
                    promised_size(), size));
  }
}

// Host names have a bounded length, so one blocking call at the start is enough.
std::vector<std::string> all_hosts() {
  using Name = std::array<char, 256>;
  int size = 0;
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  Name own{};
  const std::string name = host_name();
  name.copy(own.data(), own.size() - 1);
  std::vector<Name> names(static_cast<std::size_t>(size));
  mpi_check(MPI_Allgather(own.data(), sizeof(Name), MPI_BYTE, names.data(), sizeof(Name), MPI_BYTE,
                          MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> hosts;
  for (const Name& each : names) {
    hosts.emplace_back(each.data());
  }
  return hosts;
}

// Open MPI prints nine lines about an MPI_Abort below the message that gives the reason. It has no
// interface to prevent that after MPI_Init; other MPI libraries lack this variable.
void silence_open_mpi() {
  if (auto* const quiet = static_cast<bool*>(::dlsym(RTLD_DEFAULT, "orte_execute_quiet"))) {
    *quiet = true;
  }
}

std::vector<RankPlace> all_places(Communicator& world) {
  const CoreBinding own = current_binding();
  const nlohmann::json text = {own.cores, own.cpus, own.packages, own.numa_nodes, node_name()};
  const std::vector<std::string> texts = all_gather_text(world, text.dump());
  std::vector<RankPlace> places;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto theirs = nlohmann::json::parse(texts[static_cast<std::size_t>(rank)]);
    RankPlace place;
    place.rank = rank;
    place.host = world.members().host(rank);
    place.binding = {theirs.at(0), theirs.at(1), theirs.at(2), theirs.at(3)};
    place.node = theirs.at(4);
    places.push_back(std::move(place));
  }
  complete_places(places);
  return places;
}

}  // namespace

MpiSession::MpiSession()
    : launcher_(detect_launcher(process_environment())),
      uncaught_at_start_(std::uncaught_exceptions()) {
  if (launcher_ == Launcher::alone) {
    recorder_ = std::make_unique<FlightRecorder>(0, host_name());
    world_ = std::make_unique<SelfCommunicator>();
  } else {
    check_fabric_settings(process_environment());
    const auto limit = start_deadline(process_environment()("TRIREME_START_DEADLINE"));
    const StartAlarm alarm(
        limit,
        fmt::format(
            "{}: MPI did not connect all ranks within {}: a rank is stopped, a host is down, or "
            "the hosts cannot reach each other (to find out, use mpirun --mca btl_base_verbose 30, "
            "or UCX_LOG_LEVEL=info). Set TRIREME_START_DEADLINE=SECONDS to wait longer",
            name_before_start(), format_seconds(limit.count())));
    start_mpi();
    recorder_ = std::make_unique<FlightRecorder>(own_rank(), host_name());
    watcher_ = std::make_unique<MpiWatcher>(*recorder_);
    world_ = std::make_unique<QueuedCommunicator>(make_mpi_transport(all_hosts()), "world",
                                                  kDefaultDeadline, watch());
  }
  places_ = all_places(*world_);
}

MpiSession::~MpiSession() {
  if (launcher_ == Launcher::alone) {
    return;
  }
  if (std::uncaught_exceptions() > uncaught_at_start_) {
    fmt::print(stderr,
               "rank {} (host {}) ends the job because of an error that was not handled within the "
               "MPI session\n",
               place().rank, place().host);
    abort(ExitCode::hang);
  }
  world_.reset();
  watcher_.reset();
  (void)MPI_Finalize();
}

Communicator& MpiSession::world() { return *world_; }

std::unique_ptr<Communicator> MpiSession::make_world(Backend backend, const Tuning& tuning,
                                                     const Warn& warn) {
  if (launcher_ == Launcher::alone) {
    return std::make_unique<SelfCommunicator>();
  }
  const Warn warn_once = [&](const std::string& text) {
    if (world_->rank() != 0) {
      return;
    }
    if (warn) {
      warn(text);
    } else {
      fmt::print(stderr, "warning: {}\n", printable(text));
    }
  };
  Watch own = watch();
  own.group = mix64(++worlds_);  // unlike those of the control world and its groups
  return WorldFactory(*world_, warn_once, own).make(backend, tuning);
}

std::unique_ptr<Communicator> MpiSession::make_device_world(std::unique_ptr<Communicator> control,
                                                            NcclWorldOptions options) {
  if (launcher_ != Launcher::alone) {
    options.watch = watch();
    options.watch.group = mix64(++worlds_);
  }
  return make_nccl_world(std::move(control), options);
}

const RankPlace& MpiSession::place() const {
  return places_[static_cast<std::size_t>(world_->rank())];
}

std::string MpiSession::library_version() const {
  if (launcher_ == Launcher::alone) {
    return "none";
  }
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  mpi_check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find(','));
}

// After a hang, waits a second, because the other ranks are about to find its cause and report it
// too.
void MpiSession::abort(ExitCode code) {
  if (launcher_ != Launcher::alone) {
    if (code == ExitCode::hang) {
      std::this_thread::sleep_for(kLastWords);
    }
    silence_open_mpi();
    (void)MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  }
  std::_Exit(static_cast<int>(code));
}

}  // namespace trireme
