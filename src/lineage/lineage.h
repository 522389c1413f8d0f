// Walks from a checkpoint, the checkpoints of a run or a dataset to everything that it was made
// from, as far as it can still be read, and checks all of it against signed statements
// (src/evidence/folder_check.h). Of an exported model, it checks the files. Of a run, it also
// checks the encrypted logs (src/keys/run_logs_check.h). It compares what it finds with audit logs,
// if some are named. It needs no network and no configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/evidence/folder_check.h"
#include "src/keys/keyed_text_reader.h"

namespace trireme {

struct LineageOptions {
  std::vector<TrustedKey> trusted;
  int threads = 1;
  // Folders that were moved: the place that statements name, and the place now, both without a
  // slash at the end. A note names those that no statement mentions.
  std::vector<std::pair<std::string, std::string>> moved = {};
  // Opens the encrypted logs of a run; null to check what can be checked without keys. Outlives the
  // walk.
  const KeyedTextReader* logs = nullptr;
  // Audit logs to check and to compare with the checkpoints and the logs of a run, the oldest
  // first.
  std::vector<std::filesystem::path> audit_logs = {};
};

// LineageItem is a line of the page: something that was checked, or could not be.
struct LineageItem {
  int depth = 0;     // 0 for what the user has named, 1 for what that was made from, ...
  std::string role;  // "checkpoint", "dataset", or what a statement calls it, such as "parent"
  std::string place;
  std::string summary;             // what was found
  std::vector<std::string> facts;  // what the statement says, line by line
  ExitCode code = ExitCode::ok;
  bool is_unsigned = false;  // all findings about it with the code are of this kind
};

struct Lineage {
  std::vector<LineageItem> items;
  std::vector<EvidenceFault> faults;
  std::vector<std::string> notes;
  std::int64_t files = 0;  // that have the digests of a statement or manifest
  std::int64_t bytes = 0;  // that were read

  // Returns the code of the worst fault: damage, then a lack of trust, then files that cannot be
  // read, then files that are gone.
  ExitCode code() const;
};

// The path is a folder, or a signed list of digests (src/evidence/digest_list.h). Throws NotFound
// if it is or holds nothing of this kind, or if an audit log is not there.
Lineage walk_lineage(const std::filesystem::path& what, LineageOptions options);

}  // namespace trireme
