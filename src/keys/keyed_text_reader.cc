#include "src/keys/keyed_text_reader.h"

#include <utility>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/log_keys.h"
#include "src/keys/sealed_form.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns the folder of the run in which a file really lies, after all symbolic links.
fs::path real_place_of(const fs::path& path) {
  const fs::path real = fs::weakly_canonical(path);
  const fs::path run = run_with_log_keys(real);
  return run.empty() ? real.parent_path() : run;
}

}  // namespace

const KeyRing& KeyedTextReader::ring() const {
  if (ring_ == nullptr) {
    own_ = std::make_unique<const KeyRing>(uris_());
    ring_ = own_.get();
  }
  return *ring_;
}

const KeyedTextReader::KeyOfStart& KeyedTextReader::key_of(const fs::path& run,
                                                           const std::string& id,
                                                           const fs::path& place) const {
  const fs::path file = log_key_file(run, id);
  const auto admit = [&](const LogStart& start) {
    if (admit_ && !admitted_.contains({place, file.string()})) {
      admit_(place, start.label);
      admitted_.emplace(place, file.string());
    }
  };
  if (const auto known = keys_.find(file); known != keys_.end()) {
    admit(known->second.start);
    return known->second;
  }
  const StartKeys own = read_start_keys(run, id);
  admit(own.start);
  const std::string origin = file.string();
  DataKey key = ring().unwrap(own.keys, origin);
  check_wrapped_keys(own.keys, key, own.keys.contents, origin);
  return keys_.emplace(file, KeyOfStart{std::move(key), own.start}).first->second;
}

// Throws if lines are missing at the end, to which the last start that ended in good order attests.
void KeyedTextReader::check_end(const std::string& text, const OpenedText& opened,
                                const fs::path& run, const fs::path& path,
                                const fs::path& place) const {
  const LogStarts starts = list_log_starts(run);
  check_one_run(starts, run);
  const LogStart* const last = last_closed_start(starts, run);
  if (last == nullptr) {
    return;
  }
  const KeyOfStart& known = key_of(run, last->key, place);
  const ClosedLogs closed = read_closed_logs(run, known.start, known.key);
  const std::int64_t first =
      opened.first_key.empty() ? 0 : key_of(run, opened.first_key, place).start.number;
  check_not_cut({closed, known.start.number, first}, text, run, path);
}

void KeyedTextReader::check_start(const fs::path& run, const LogStart& start) const {
  const KeyOfStart& known = key_of(run, start.key, run);
  if (fs::exists(closed_logs_file(run, start.key))) {
    (void)read_closed_logs(run, known.start, known.key);
  }
}

OpenedText KeyedTextReader::open_sections(const std::string& text, const fs::path& path) const {
  const fs::path run = run_with_log_keys(path);
  if (run.empty()) {
    throw DataError(
        fmt::format("{} is encrypted, but no folder {} lies beside it or above it, without which "
                    "nothing opens it: leave it in its run's folder",
                    printable(path.string()), kLogKeysFolder));
  }
  const fs::path place = real_place_of(path);
  const fs::path full = fs::absolute(path).lexically_normal();
  OpenedText opened = open_sealed_text(
      text, name_in_run(run, full),
      [&](const std::string& id) -> const DataKey& { return key_of(run, id, place).key; },
      path.string());
  if (!text.empty()) {
    check_first_section(opened.previous, full);
  }
  check_end(text, opened, run, full, place);
  return opened;
}

std::string KeyedTextReader::open(const std::string& text, const fs::path& path) const {
  return open_sections(text, path).text;
}

}  // namespace trireme
