// DraftFolder is the folder that an import or export fills. It has a hidden name beside its final
// one until everything in it has been written and checked, so that a half-written model never
// stands under the name that the user gave. Collective: the ranks share it.
//
//   .NAME.draft-HOST-PID     PID: of rank 0, which holds a lock (flock) of the folder meanwhile
//
// While it exists, rank 0 removes it before a signal such as SIGTERM ends the process. What SIGKILL
// leaves, the next draft of the same output removes if it is made on the same host.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "mpi/communicator.h"
#include "src/base/file.h"

namespace trireme {

// Throws ConfigError if a new folder would lie in the folder `source` from which it is made. A
// later cleanup of the source would take it away, and readers of the source would find a folder in
// it that is not theirs. does: what is done to the source, as in "is to be pruned".
void check_outside(const std::filesystem::path& out, const std::filesystem::path& source,
                   std::string_view does);

class DraftFolder {
 public:
  // Collective. Makes the draft of `final`, which must not exist (else throws PolicyError), nor lie
  // in a checkpoint, nor have too long a name (else ConfigError).
  // Rank 0 removes drafts of `final` that processes of this host left when they were killed.
  DraftFolder(Communicator& world, std::filesystem::path final);
  // Rank 0 removes the draft unless it was kept.
  ~DraftFolder();
  DraftFolder(const DraftFolder&) = delete;
  DraftFolder& operator=(const DraftFolder&) = delete;

  const std::filesystem::path& path() const { return draft_; }
  // Gives the draft its final name. Throws PolicyError if another process has made a folder of this
  // name meanwhile. Called on rank 0.
  void keep();

 private:
  class SignalWatch;

  // Makes and locks the draft. Called on rank 0.
  void begin(const std::filesystem::path& absolute);
  // Removes the draft unless it was kept.
  void remove();

  int rank_;
  std::filesystem::path final_;
  std::filesystem::path draft_;
  UniqueHandle<FileDescriptorTraits> lock_;  // on rank 0
  std::unique_ptr<SignalWatch> watch_;       // on rank 0
};

// Writes a new file in a draft, and syncs it.
void write_whole_file(const std::filesystem::path& path, const std::string& text);

// Collective. Runs work(i) for the numbers below `count` that are this rank's: every size()-th one.
// All ranks throw if one of them does: that rank its own error, the others a DataError.
void share_work(Communicator& world, std::int64_t count,
                const std::function<void(std::int64_t)>& work);

}  // namespace trireme
