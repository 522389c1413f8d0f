// RunDirectory names the files of a run and writes some of them.
//
//   <run>/config.yaml            rank 0      resolved, with the origin of each value
//   <run>/metrics.jsonl          rank 0      one object per logged step; appended to at resume
//   <run>/logs/rank-00000.jsonl  every rank
//   <run>/tensorboard/           rank 0      event files
//   <run>/trace/rank-00000.json  every rank  with run.trace
//   <run>/checkpoints/           every rank  unless checkpoint.dir is set (io/checkpoint)
//   <run>/exit_reason.json       the first rank that fails
//   <run>/.lock                  rank 0      held while the run lives
//   <run>/DONE                   rank 0      written when the last step is durable
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/data/file_lock.h"
#include "src/train/run/rank_device.h"

namespace trireme {

// ExitReason says why a process ended without finishing the run.
struct ExitReason {
  int code = 0;
  std::string kind;
  std::string message;
  int rank = 0;
  std::string host;
  int signal = 0;
  std::int64_t step = 0;
  std::string phase;
  std::optional<RankDevice> device = {};  // of the rank, once that is known
};

// RunStatus says what a rank is doing, for its exit reason. Owned by main() and updated by the
// training loop.
struct RunStatus {
  std::string phase = "start";  // or "load", "train", "evaluate", "checkpoint", "generate"
  std::int64_t step = 0;
};

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.yaml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path prediction() const { return root_ / "prediction.json"; }
  std::filesystem::path log(int rank) const;
  std::filesystem::path trace() const { return root_ / "trace"; }
  std::filesystem::path tensorboard() const { return root_ / "tensorboard"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }

  // Creates the folders and takes the run for this process. Rank 0 calls it before any other rank
  // uses the run's folder, and holds the lock while it runs. Throws PolicyError if another run
  // holds it.
  std::optional<FileLock> take() const;
  // Removes an exit reason that an earlier start has left; called when the run has finished.
  void forget_exit_reason() const;
  // Returns the step at which the run was finished, if it was. Throws DataError if DONE is damaged.
  std::optional<std::int64_t> done_step() const;
  void mark_done(std::int64_t step) const;
  // Removes DONE when the run continues.
  void clear_done() const;
  // Writes the reason unless another rank has written one. Never throws, since it is called while
  // the process exits.
  void write_exit_reason(const ExitReason& reason) const noexcept;

 private:
  std::filesystem::path root_;
};

// Returns seconds since the epoch, for records that people read; nothing is ordered by it.
double wall_clock_seconds();

}  // namespace trireme
