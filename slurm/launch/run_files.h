// What a run's own files say of an attempt: DONE, exit_reason.json, the newest checkpoint. One
// thread. A file system that does not answer like that of a good day reads as "nothing there".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "slurm/policy/verdict.h"
#include "slurm/wire/messages.h"
#include "src/base/file.h"

namespace trireme {

class RunFiles {
 public:
  RunFiles(std::filesystem::path run, std::filesystem::path checkpoints)
      : run_(std::move(run)), checkpoints_(std::move(checkpoints)) {}

  // For this launch, as long as this lives. PolicyError where another has the run. A file system
  // without locks gives none.
  void take();
  // Before an attempt: removes the reason of the attempt before, and remembers what there is: what
  // can't be removed is not taken for this attempt's.
  void begin_attempt();
  std::optional<StatedReason> reason() const;
  // Whether the attempt has finished the run. A launcher's code of 0 vouches for a DONE of before.
  bool done(std::optional<int> code) const;
  // The newest checkpoint of those that have a manifest.
  SavedStep durable_step() const;

  // What the launch ends with: where no rank has said the same, exit_reason.json says it now.
  void end(int code, const std::string& message, const std::string& host) const;

  std::filesystem::path journal() const { return run_ / "journal.jsonl"; }

 private:
  std::filesystem::path run_;
  std::filesystem::path checkpoints_;
  std::string done_before_;
  std::string reason_before_;
  UniqueHandle<FileDescriptorTraits> lock_;
};

}  // namespace trireme
