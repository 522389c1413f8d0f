// The keys of a run's encrypted files: logs, metrics, events, traces (sealed_text.h). Each start of
// a run that encrypts them has a data key of its own, which is wrapped like that of a checkpoint:
//
//   <run>/log-keys/<identity of the data key>/keys.json     (wrapped_keys.h, log_starts.h)
//   <run>/log-keys/<identity of the data key>/closed.json   (closed_logs.h)
//
// Changing the recipients rewrites the first of these files only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/run_text.h"
#include "src/keys/folder_key.h"
#include "src/keys/key_ring.h"
#include "src/keys/log_starts.h"

namespace trireme {

// Returns the path of a file in its run's folder, as its encryption uses it.
std::string name_in_run(const std::filesystem::path& run, const std::filesystem::path& file);

// Encrypts the files of a run with one data key.
class LogSealer : public RunSealer {
 public:
  LogSealer(std::filesystem::path run, std::shared_ptr<const DataKey> key)
      : run_(std::move(run)), key_(std::move(key)) {}
  std::unique_ptr<TextSealer> sealer(const std::filesystem::path& path) const override;

 private:
  std::filesystem::path run_;
  std::shared_ptr<const DataKey> key_;
};

struct BegunLogs {
  LogStart start;
  // "", or a warning that names the files below, or those that were plain until now.
  std::string warning = {};
  // Files that are not as earlier starts have left them, by their names in the run's folder:
  std::vector<std::string> set_aside = {};   // plain ones that were moved to kSetAsideFolder
  std::vector<std::string> taken_over = {};  // plain ones that were encrypted all the same
  std::vector<std::string> missing = {};     // ones that the newest closing record lists
  bool are_foreign() const { return !set_aside.empty() || !taken_over.empty() || !missing.empty(); }
};

// Throws PolicyError if no key of the ring opens the logs of the newest start whose key was not
// destroyed. A start calls it before it writes logs, because those who have the keys of the earlier
// starts could not open what it writes.
void check_newest_logs_open(const std::filesystem::path& run, const KeyRing& ring);
// Stores the wrapped key of this start, and encrypts the run's files that are plain. If a start has
// left a closing record (closed_logs.h), no plain file can be from the run, and they are set aside
// instead, so that nobody's lines become authentic. One process calls it, which holds the lock of
// the run, before any writes an encrypted file. Throws DataError if the keys of earlier starts are
// damaged, or those of another run lie there.
BegunLogs begin_encrypted_files(const std::filesystem::path& run, const FolderKey& key,
                                const RunSealer& sealer);
// Binds the label (LogStart) of what a start has read to its key, and so to all files that it
// encrypts. A run without an identity gets none. Throws DataError if keys.json was changed by
// somebody without the key.
void label_logs(const std::filesystem::path& run, LogStart& start, std::string label,
                const DataKey& key);
// Throws PolicyError if earlier starts have encrypted the files of the run. A start that does not
// must call it before it writes any.
void check_files_are_plain(const std::filesystem::path& run);

}  // namespace trireme
