// AuditLog appends events to the audit log of a site (audit_line.h). Several processes on several
// hosts may append to one log: each opens the file anew for an event, takes a lock (flock) and
// continues the last line. With a key, each event is followed by a signed head. Events are synced
// to the disk before append() returns. One thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/evidence/audit_line.h"

namespace trireme {

class AuditLog {
 public:
  explicit AuditLog(std::filesystem::path path, std::optional<SigningKey> key = std::nullopt);

  // Returns the new head of the log, and in `appended`, unless it is null, the lines that were
  // appended, each with its line end. Creates the log if there is none. A last line that a crash
  // has torn is removed, which an event `log.torn` records; with a key, the last event as well if
  // the crash has torn its head, and `log.torn` quotes it. Throws DataError if the last line is
  // damaged, and IoError, NotFound or PolicyError if the event cannot be written or the file system
  // has no locks; then the log is as before. Prints a warning if the last line is incomplete, does
  // not continue the one before it or, with a key, has no signature, or a wrong one of that key.
  AuditHead append(std::string_view event, const nlohmann::ordered_json& details,
                   std::string* appended = nullptr);

  // Throws what append() would throw, as far as that shows without writing.
  void check() const;

  const std::filesystem::path& path() const { return path_; }
  const std::optional<SigningKey>& key() const { return key_; }

 private:
  std::filesystem::path path_;
  std::optional<SigningKey> key_;
};

}  // namespace trireme
