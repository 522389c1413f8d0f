// RunFiles reads what the files of a run say about an attempt: DONE, exit_reason.json, the newest
// checkpoint. Used by one thread. Files that cannot be read count as absent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "slurm/policy/course.h"
#include "slurm/wire/messages.h"
#include "src/base/file.h"

namespace trireme {

class RunFiles {
 public:
  RunFiles(std::filesystem::path run, std::filesystem::path checkpoints)
      : run_(std::move(run)), checkpoints_(std::move(checkpoints)) {}

  // Locks the run for this launch as long as this object lives. Throws PolicyError if another
  // launch holds the lock, or ranks that were started otherwise use the run's folder. File systems
  // without locks provide none.
  void take();
  // Call before an attempt. Removes the exit reason of the previous attempt and remembers the
  // existing files, so that none that cannot be removed is attributed to this attempt.
  void begin_attempt();
  std::optional<StatedReason> reason() const;
  // Returns whether the run is finished. A DONE from before this attempt counts only if the
  // launcher exited with code 0.
  bool done(std::optional<int> code) const;
  // Returns the last step that this attempt has written to metrics.jsonl, or -1.
  std::int64_t logged_step() const;
  // Returns the newest checkpoint that has a manifest.
  SavedStep durable_step() const;

  // Writes exit_reason.json for the end of the launch, unless a rank has written one with this
  // code.
  void end(const Finish& order, const std::string& host) const;

  std::filesystem::path journal() const { return run_ / "journal.jsonl"; }

 private:
  std::filesystem::path run_;
  std::filesystem::path checkpoints_;
  std::string done_before_;
  std::string reason_before_;
  std::string metrics_before_;  // the last line of metrics.jsonl
  UniqueHandle<FileDescriptorTraits> lock_;
};

}  // namespace trireme
