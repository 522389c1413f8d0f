// RunDirectory: the files of a run, and who writes them.
//
//   <run>/config.yaml            rank 0   resolved, with the origin of each value
//   <run>/metrics.jsonl          rank 0   one object a logged step; appended to at resume
//   <run>/logs/rank-00000.jsonl  each rank
//   <run>/tensorboard/           rank 0   event files
//   <run>/trace/rank-00000.json  each rank, with run.trace
//   <run>/checkpoints/           all (io/checkpoint), unless checkpoint.dir says elsewhere
//   <run>/exit_reason.json       the first rank that fails
//   <run>/.lock                  held by rank 0 while the run lives
//   <run>/DONE                   rank 0, when the last step is durable
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/data/file_lock.h"

namespace trireme {

// Why a process ended otherwise than by finishing.
struct ExitReason {
  int code = 0;
  std::string kind;
  std::string message;
  int rank = 0;
  std::string host;
  int signal = 0;
  std::int64_t step = 0;
  std::string phase;
};

// What a rank is doing, for its exit reason. Owned by main(), kept up to date by the training loop.
struct RunStatus {
  std::string phase = "start";  // "load", "train", "evaluate", "checkpoint"
  std::int64_t step = 0;
};

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.yaml"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path log(int rank) const;
  std::filesystem::path trace() const { return root_ / "trace"; }
  std::filesystem::path tensorboard() const { return root_ / "tensorboard"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }

  // Rank 0, before anyone else touches the directory: takes it for this process, makes the folders.
  // PolicyError if another run has it. Hold the lock while running.
  std::optional<FileLock> take() const;
  // A finished run has no reason to have ended otherwise.
  void forget_exit_reason() const;
  // The step at which the run was finished, if it was.
  std::optional<std::int64_t> done_step() const;
  void mark_done(std::int64_t step) const;
  // A run that goes on is not done.
  void clear_done() const;
  // Keeps the first reason that any rank writes. Never throws: it is called on the way out.
  void write_exit_reason(const ExitReason& reason) const noexcept;

 private:
  std::filesystem::path root_;
};

// Seconds since the epoch, for records that people read; never for ordering.
double wall_clock_seconds();

}  // namespace trireme
