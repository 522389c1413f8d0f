// The starts of a run that have encrypted its files. The keys.json of each (log_keys.h) says in
// `contents`, which its MAC covers, to which run it belongs:
//
//   logs RUN NUMBER LABEL   RUN: 32 hexadecimal digits that the first start has drawn; NUMBER: of
//                           the start, from 1; LABEL: that of what the start has read, as JSON
//   logs RUN NUMBER         if that has no label
//   logs                    in runs that a program without these identities has begun
//
// A file of another run can be put into a run's folder only together with its key, which names the
// other run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/keys/wrapped_keys.h"

namespace trireme {

struct LogStart {
  std::string key;  // identity of its data key
  std::string run;  // "" in runs without an identity
  std::int64_t number = 0;
  std::string label = {};  // a JSON object (src/policy/label.h), or ""
};

// Returns `contents` for keys.json.
std::string contents_of(const LogStart& start);
// Throws DataError, which does not name the file, if `contents` has another form.
LogStart parse_log_contents(std::string_view contents, const std::string& key);

struct LogStarts {
  std::vector<LogStart> all;  // sorted by their numbers
  std::string damage = {};    // of a keys.json that cannot be read, and is left out; or ""
};

// Reads the folder log-keys of a run, without keys: what it returns is not authenticated.
LogStarts list_log_starts(const std::filesystem::path& run);
// Throws DataError if the starts belong to different runs.
void check_one_run(const LogStarts& starts, const std::filesystem::path& run);
// Returns the start that follows, with the label of the one before it. key: identity of its data
// key. A run without an identity gets none.
LogStart next_log_start(const LogStarts& earlier, const std::string& key);

struct StartKeys {
  LogStart start;
  WrappedKeys keys;
};
// Reads the keys.json of the start with this data key. Throws DataError if it is missing or
// damaged, belongs to another key, or no longer wraps its key.
StartKeys read_start_keys(const std::filesystem::path& run, const std::string& id);

// Returns the place of keys.json. id: of the data key.
std::filesystem::path log_key_file(const std::filesystem::path& run, const std::string& id);

}  // namespace trireme
