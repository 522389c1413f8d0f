// Connects the ranks of a run over the backend that its configuration asks for. Collective.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "mpi/links/link_book.h"
#include "mpi/session/mpi_session.h"
#include "src/base/log.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_config.h"

namespace trireme {

// World connects all ranks of a run twice, so that tensors and small messages do not wait for each
// other.
struct World {
  // Notes how NCCL connects the groups; empty on CPUs. It outlives the communicators.
  std::unique_ptr<LinkBook> links = std::make_unique<LinkBook>();
  std::unique_ptr<Communicator> data = nullptr;  // tensors, in the order of streams
  // Metadata, agreement, clocks and checkpoints, in host memory.
  std::unique_ptr<Communicator> control = nullptr;
  Device device;                    // on which this rank computes
  std::vector<RankDevice> devices;  // of all ranks
};

// Returns the text of the tuning table, or "" without one. Throws NotFound if the file does not
// exist and DataError if it is not a table.
std::string read_tuning(const std::filesystem::path& path);

// Chooses each rank's device. Connects the hosts over the backend and tuning table that
// comm.backend and comm.tuning name, of which only rank 0 reads the table; CUDA devices exchange
// tensors over NCCL. Throws on all ranks alike: what agree_on_devices() throws, and ConfigError if
// comm.require is set for CPUs. The world must be destroyed before the session.
World connect(const RunConfig& config, MpiSession& session, Log& log);

}  // namespace trireme
