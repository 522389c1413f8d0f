// TrainingHost holds what a run borrows from the process that executes it: its ranks, its device,
// and what tells it to stop. All of it outlives Training, which takes it.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/communicator.h"
#include "mpi/links/link_book.h"
#include "mpi/topology.h"
#include "mpi/watch/flight_recorder.h"
#include "src/base/log.h"
#include "src/base/progress_page.h"
#include "src/base/run_text.h"
#include "src/train/ending/stop_flag.h"
#include "src/train/ending/time_limit.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_directory.h"

namespace trireme {

class Access;
class StepKeys;
struct RunOrigin;
struct MeasuredStep;
struct StepMetrics;

struct TrainingHost {
  Communicator& world;                               // all ranks, for small messages in host memory
  Communicator& data;                                // all ranks, for tensors
  Device device;                                     // where this rank computes
  const std::vector<RankDevice>* devices = nullptr;  // of all ranks; null if all are the CPU
  const std::vector<RankPlace>& places;              // by rank
  FlightRecorder& recorder;                          // of this rank
  Log& log;
  const StopFlag& stop;
  RunStatus& status;
  NodeMemory node = {};   // outlives this rank; if empty, no checkpoints in memory
  double mtbf_hours = 0;  // time between failures that the launcher observed; 0 means unknown
  TimeLimit limit = {};   // used on rank 0
  ProgressPage* progress = nullptr;  // shows progress to the launcher; null without one
  const LinkBook* links = nullptr;   // how NCCL connects this rank; null if it does not
  // Records an event in the site's audit log; empty on ranks other than 0, and without a log.
  std::function<void(std::string_view event, const nlohmann::ordered_json& details)> audit = {};
  // Called after each step, on all ranks alike, with whether a save follows; checks whether the
  // ranks obey security.transport (TransportCheck) and security.seccomp. May be empty.
  std::function<void(std::int64_t step, bool saves)> check_security = {};
  // Says where checkpoints come from; null on all ranks if no provenance is to be signed.
  const RunOrigin* origin = nullptr;
  // Encrypts and opens checkpoints; null on all ranks if no keys are configured.
  StepKeys* keys = nullptr;
  // Encrypts and opens logs, metrics and traces; in plain unless encryption.logs is set.
  RunText text = {};
  // The folder that contains sys, with the kernel's counters of energy.
  std::filesystem::path counters = "/";
  // Says what the run may do by the policies of the hosts; null on all ranks if that is not asked.
  const Access* access = nullptr;
  // Called on every rank after each logged step, with that rank's own times; may be empty.
  std::function<void(const StepMetrics& metrics)> observe = {};
  // Called on every rank at the end, with where the time of all steps went; may be empty, on all
  // ranks alike.
  std::function<void(const MeasuredStep& measured)> measured = {};
  // Called on all ranks with the label of all that the run has read so far, before it logs anything
  // that depends on it; binds it to the encrypted logs. Collective. May be empty.
  std::function<void(const std::optional<Label>& label)> bind_label = {};
};

}  // namespace trireme
