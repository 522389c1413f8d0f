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

#include "src/base/run_text.h"
#include "src/keys/folder_key.h"
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
  // "", or a warning that names the files that were plain: earlier starts wrote them, or somebody
  // has put them in the place of encrypted ones.
  std::string warning;
};

// Stores the wrapped key of this start, and encrypts the run's files that are plain. One process
// calls it, which holds the lock of the run, before any writes an encrypted file. Throws DataError
// if the keys of earlier starts are damaged, or those of another run lie there.
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
