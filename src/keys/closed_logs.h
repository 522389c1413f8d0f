// The record of how a start of a run left the run's encrypted files (sealed_text.h) when it ended
// in good order, so that lines which somebody cuts off afterwards are missed:
//
//   <run>/log-keys/<identity of the data key>/closed.json
//
//   {
//    "version": 1,
//    "format": "trireme-closed-logs",
//    "data_key": "<32 digits>",
//    "contents": "logs RUN NUMBER",                     as in keys.json (log_starts.h)
//    "files": [{"name": "logs/rank-00000.jsonl",        its path in the run's folder
//               "bytes": 12345,                         up to the end of its last whole line
//               "last": "<64 digits>"}, ...]            SHA-256 of that line, without its end
//    "mac": "<64 digits, HMAC-SHA256 of the text below with the data key's MAC key for `closed`>",
//    "seal": "sha256:<64 digits>"                                         (src/base/sealed_json.h)
//   }
//
// The text is "DATA_KEY CONTENTS\n" and then, for each file, "NAME BYTES LAST\n". The last line
// stands for all before it (sealed_text.h). Later starts append to files, rotate logs, and write
// some files anew; what they write is covered when they end in good order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/keys/data_key.h"
#include "src/keys/log_starts.h"

namespace trireme {

struct ClosedFile {
  std::string name;
  std::int64_t bytes = 0;
  std::string last;
};

struct ClosedLogs {
  std::string data_key;
  std::string contents;
  std::vector<ClosedFile> files;
  std::string mac;  // set by sign()

  // Returns the MAC that these contents have with the data key.
  std::string expected_mac(const DataKey& key) const;
  void sign(const DataKey& key) { mac = expected_mac(key); }
  // Returns null if the file is not listed.
  const ClosedFile* find(std::string_view name) const;
};

std::string to_text(const ClosedLogs& closed);
// Throws DataError that names `origin`.
ClosedLogs parse_closed_logs(std::string_view text, const std::string& origin);

// Returns the place of closed.json. id: of the data key.
std::filesystem::path closed_logs_file(const std::filesystem::path& run, const std::string& id);
// Returns the newest start that has left such a record, or null. No key is needed: whoever uses the
// record authenticates it.
const LogStart* last_closed_start(const LogStarts& starts, const std::filesystem::path& run);
// Plain files that a start found where encrypted ones belong are moved to this folder of the run.
inline constexpr std::string_view kSetAsideFolder = "set-aside";
// Returns "", or a sentence saying that a start of the run has set files aside.
std::string note_of_files_set_aside(const std::filesystem::path& run);
// Returns "", or a sentence saying that the newest start has not left one.
std::string lack_of_closing_record(const std::filesystem::path& run);
// Reads the record of a start. Throws DataError if it was changed; without the key, only if it does
// not have its form or belongs to another start.
ClosedLogs read_closed_logs(const std::filesystem::path& run, const LogStart& start);
ClosedLogs read_closed_logs(const std::filesystem::path& run, const LogStart& start,
                            const DataKey& key);
// Writes the record for the files that are there now. No process writes to them. Returns the number
// of files.
std::int64_t close_logs(const std::filesystem::path& run, const LogStart& start,
                        const DataKey& key);

// A record, and the starts that an encrypted file compared with it needs.
struct ClosedCheck {
  const ClosedLogs& closed;
  std::int64_t number;        // of the start that has left the record
  std::int64_t first_number;  // of the start that began the file; 0 if the file is empty
};
// Throws DataError, which names the path, if `text`, the contents of the file of the run, is not
// what the start left, with or without further lines. A file that a later start began is not
// compared. Both paths are absolute.
void check_not_cut(const ClosedCheck& check, std::string_view text,
                   const std::filesystem::path& run, const std::filesystem::path& path);

}  // namespace trireme
