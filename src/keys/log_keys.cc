#include "src/keys/log_keys.h"

#include <string>
#include <system_error>
#include <vector>

#include "src/base/append_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/encrypted_files.h"
#include "src/keys/rotated_log.h"
#include "src/keys/sealed_text.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Encrypts a file that an earlier start has written.
void encrypt_file(const fs::path& path, const RunSealer& sealer) {
  const std::unique_ptr<TextSealer> section = sealer.sealer(path);
  const fs::path older = rotated_log(path);
  std::error_code none;
  std::string text =
      section->begin(!older.empty() && fs::exists(older, none) ? last_line_of(older) : "");
  text += section->seal(read_file(path));
  text += section->end();
  write_file_durably(path, text);
}

std::string names_of(const fs::path& run, const std::vector<fs::path>& files) {
  std::string names;
  for (const fs::path& file : files) {
    names += (names.empty() ? "" : ", ") + printable(name_in_run(run, file));
  }
  return names;
}

// Called if the run has no keys of earlier starts.
void check_nothing_is_encrypted(const fs::path& run) {
  const std::vector<fs::path> encrypted = encrypted_files(run);
  if (!encrypted.empty()) {
    throw DataError(fmt::format(
        "{}: {} is missing, without which nothing opens what earlier starts have written, nor what "
        "this one would append: restore it from a copy, or if it is lost, remove {}",
        printable(run.string()), kLogKeysFolder, names_of(run, encrypted)));
  }
}

}  // namespace

std::string name_in_run(const fs::path& run, const fs::path& file) {
  const fs::path folder = fs::absolute(run).lexically_normal();
  const fs::path full = fs::absolute(file).lexically_normal();
  std::string name = full.lexically_relative(folder).string();
  return is_rotated_log(full)
             ? name.replace(name.size() - kRotatedSuffix.size(), kRotatedSuffix.size(), kLogSuffix)
             : name;
}

std::unique_ptr<TextSealer> LogSealer::sealer(const fs::path& path) const {
  return std::make_unique<SectionSealer>(key_, name_in_run(run_, path));
}

BegunLogs begin_encrypted_files(const fs::path& run, const FolderKey& key,
                                const RunSealer& sealer) {
  const LogStarts earlier = list_log_starts(run);
  if (!earlier.damage.empty()) {
    throw DataError(fmt::format(
        "{}: restore the file, without which the logs of that start cannot be read, or remove its "
        "folder if they are lost",
        earlier.damage));
  }
  check_one_run(earlier, run);
  if (earlier.all.empty()) {
    check_nothing_is_encrypted(run);
  }
  BegunLogs begun{next_log_start(earlier, key.key.id()), ""};
  const fs::path file = log_key_file(run, key.key.id());
  make_directories(file.parent_path());
  write_file_durably(file, keys_text(key, contents_of(begun.start)));
  const std::vector<fs::path> plain = plain_files(run);
  for (const fs::path& each : plain) {
    encrypt_file(each, sealer);
  }
  if (!plain.empty()) {
    begun.warning = fmt::format(
        "these files of the run were plain and are encrypted now: {}; {}", names_of(run, plain),
        earlier.all.empty()
            ? "until now, whoever may write to the run could change them unnoticed"
            : "earlier starts had encrypted the run's files, so somebody may have replaced "
              "them, unless a start was killed while it encrypted them");
  }
  return begun;
}

void label_logs(const fs::path& run, LogStart& start, std::string label, const DataKey& key) {
  if (start.run.empty() || start.label == label) {
    return;
  }
  const fs::path file = log_key_file(run, start.key);
  WrappedKeys keys = read_start_keys(run, start.key).keys;
  check_wrapped_keys(keys, key, contents_of(start), file.string());
  start.label = std::move(label);
  keys.contents = contents_of(start);
  keys.sign(key);
  write_file_durably(file, to_text(keys));
}

void check_files_are_plain(const fs::path& run) {
  std::error_code none;
  const fs::path metrics = run / "metrics.jsonl";  // which every start writes
  const bool has_keys = fs::exists(run / kLogKeysFolder, none);
  if (has_keys || is_sealed_file(metrics)) {
    throw PolicyError(fmt::format(
        "{}: earlier starts have encrypted the logs of this run ({}), but encryption.logs is off: "
        "set it to true, or choose another run.dir",
        printable(run.string()),
        has_keys ? fmt::format("{} exists", kLogKeysFolder) : "metrics.jsonl is encrypted"));
  }
}

}  // namespace trireme
