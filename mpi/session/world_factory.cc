#include "mpi/session/world_factory.h"

#include <algorithm>

#include "mpi/agreement.h"
#include "mpi/collective/queued_communicator.h"
#include "mpi/hierarchy/hierarchical_transport.h"
#include "mpi/session/mpi_transport.h"
#include "mpi/session/tuned_transport.h"
#include "mpi/shm/shm_transport.h"
#include "mpi/ucx/ucx_transport.h"
#include "src/base/error.h"

namespace trireme {

std::unique_ptr<Communicator> WorldFactory::make(Backend backend, const Tuning& tuning) {
  const bool is_tuned = backend == Backend::automatic && !tuning.entries.empty();
  return std::make_unique<QueuedCommunicator>(is_tuned ? make_tuned(tuning) : make_one(backend),
                                              "world", kDefaultDeadline, watch_);
}

std::unique_ptr<Transport> WorldFactory::make_one(Backend backend) {
  switch (backend) {
    case Backend::automatic:
      return make_automatic();
    case Backend::mpi:
      return make_mpi_transport(hosts_);
    case Backend::shm:
      return make_shm();
    case Backend::ucx:
      return make_ucx_transport(control_);
    case Backend::hierarchical:
      return make_hierarchical();
  }
  throw ConfigError("unknown backend");
}

// The parts fail on all ranks or on none, so that all fall back together.
std::unique_ptr<Transport> WorldFactory::make_automatic() {
  try {
    return is_one_host() ? make_shm() : make_hierarchical();
  } catch (const ConfigError& error) {
    warn_(fmt::format("{}; this run continues over MPI alone (comm.backend: mpi)", error.what()));
    return make_mpi_transport(hosts_);
  }
}

std::unique_ptr<Transport> WorldFactory::make_tuned(const Tuning& tuning) {
  std::vector<TunedTransport::Choice> choices;
  choices.push_back({Backend::automatic, make_automatic()});
  for (const TuningEntry& entry : tuning.entries) {
    const bool is_there = std::any_of(choices.begin(), choices.end(), [&](const auto& choice) {
      return choice.backend == entry.backend;
    });
    if (is_there) {
      continue;
    }
    try {
      choices.push_back({entry.backend, make_one(entry.backend)});
    } catch (const ConfigError& error) {
      warn_(fmt::format("the tuning table names the backend {}, which is not available: {}",
                        name_of(entry.backend), error.what()));
    }
  }
  return std::make_unique<TunedTransport>(std::move(choices), tuning);
}

std::unique_ptr<Transport> WorldFactory::make_shm() {
  if (!is_one_host()) {
    throw ConfigError(fmt::format(
        "comm.backend shm connects ranks of one host, but rank 0 is on {} and another rank on {}: "
        "choose hierarchical or auto",
        hosts_.front(), *std::find_if(hosts_.begin(), hosts_.end(), [&](const std::string& host) {
          return host != hosts_.front();
        })));
  }
  return make_shm_transport(control_);
}

std::unique_ptr<Transport> WorldFactory::make_hierarchical() {
  const HostLayout layout = layout_of(hosts_, control_.rank());
  if (is_one_host()) {
    return make_shm();
  }
  std::string fault;
  std::unique_ptr<Transport> local;
  try {
    const std::unique_ptr<Communicator> host_group =
        control_.split(layout.local.front(), 0, "host");
    local = make_shm_transport(*host_group);
  } catch (const ConfigError& error) {
    fault = error.what();
  }
  // If one host fails, all ranks throw.
  if (const std::string faults = gather_faults(control_, fault); !faults.empty()) {
    throw ConfigError(faults);
  }
  std::unique_ptr<Transport> network;
  try {
    network = make_ucx_transport(control_);
  } catch (const ConfigError& error) {
    warn_(fmt::format("{}; data between hosts goes through MPI", error.what()));
    network = make_mpi_transport(hosts_);
  }
  if (layout.per_host() == 1) {
    local.reset();
  }
  return make_hierarchical_transport(std::move(local), std::move(network));
}

bool WorldFactory::is_one_host() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [&](const std::string& host) { return host == hosts_.front(); });
}

}  // namespace trireme
