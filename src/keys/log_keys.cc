#include "src/keys/log_keys.h"

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "src/base/append_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/closed_logs.h"
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

std::string name_as_found(const fs::path& run, const fs::path& file) {
  return file.lexically_relative(run).generic_string();
}

// Returns the names, of which an attacker may have made many.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 20;
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    list += (list.empty() ? "" : ", ") + printable(names[i]);
  }
  return names.size() > kMostNames ? fmt::format("{} and {} more", list, names.size() - kMostNames)
                                   : list;
}

std::vector<std::string> names_as_found(const fs::path& run, const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back(name_as_found(run, file));
  }
  return names;
}

// Moves plain files out of the way of this start.
void set_aside(const fs::path& run, std::int64_t start, const std::vector<fs::path>& files) {
  const fs::path folder = run / kSetAsideFolder / fmt::format("start-{}", start);
  for (const fs::path& file : files) {
    const fs::path to = folder / name_as_found(run, file);
    make_directories(to.parent_path());
    std::error_code error;
    fs::rename(file, to, error);
    if (error) {
      throw_errno(error.value(), "move away the plain file", file);
    }
  }
}

// Returns the files of the newest closing record that are gone. Later starts replace traces.
std::vector<std::string> missing_files(const fs::path& run, const LogStart& closed, bool is_last) {
  std::vector<std::string> missing;
  try {
    for (const ClosedFile& file : read_closed_logs(run, closed).files) {
      std::error_code none;
      if ((is_last || !file.name.starts_with("trace/")) &&
          !fs::exists(fs::symlink_status(run / file.name, none))) {
        missing.push_back(file.name);
      }
    }
  } catch (const Error&) {
    // A damaged record names no files. `trireme verify` reports the damage.
  }
  return missing;
}

std::string warning_of(const BegunLogs& begun, const std::vector<std::string>& were_plain) {
  std::string warning;
  const auto add = [&](const std::vector<std::string>& names, std::string_view what,
                       std::string_view why) {
    if (!names.empty()) {
      warning +=
          fmt::format("{}{}: {}; {}", warning.empty() ? "" : ". And ", what, listed(names), why);
    }
  };
  add(were_plain, "these files of the run were plain and are encrypted now",
      begun.taken_over.empty()
          ? "until now, whoever may write to the run could change them unnoticed"
          : "earlier starts had encrypted the run's files, so somebody may have replaced them, "
            "unless a start was killed while it encrypted them");
  add(begun.set_aside,
      fmt::format("these files were plain and were moved to {}/start-{}", kSetAsideFolder,
                  begun.start.number),
      "earlier starts had encrypted the run's files, so somebody has put them there, and what they "
      "replaced is missing");
  add(begun.missing, "these files are gone", "an earlier start of the run has left them");
  return warning;
}

// Called if the run has no keys of earlier starts.
void check_nothing_is_encrypted(const fs::path& run) {
  const std::vector<fs::path> encrypted = encrypted_files(run);
  if (!encrypted.empty()) {
    throw DataError(fmt::format(
        "{}: {} is missing, without which nothing opens what earlier starts have written, nor what "
        "this one would append: restore it from a copy, or if it is lost, remove {}",
        printable(run.string()), kLogKeysFolder, listed(names_as_found(run, encrypted))));
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

void check_newest_logs_open(const fs::path& run, const KeyRing& ring) {
  const LogStarts starts = list_log_starts(run);
  for (auto start = starts.all.rbegin(); start != starts.all.rend(); ++start) {
    std::optional<StartKeys> own;
    try {
      own = read_start_keys(run, start->key);
    } catch (const DataError&) {
      continue;  // it was destroyed, or is damaged, which begin_encrypted_files() says
    }
    (void)ring.unwrap(own->keys, log_key_file(run, start->key).string());
    return;
  }
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
  BegunLogs begun{next_log_start(earlier, key.key.id())};
  const LogStart* const closed = last_closed_start(earlier, run);
  if (closed != nullptr) {
    begun.missing = missing_files(run, *closed, closed == &earlier.all.back());
  }
  const fs::path file = log_key_file(run, key.key.id());
  make_directories(file.parent_path());
  write_file_durably(file, keys_text(key, contents_of(begun.start)));
  const std::vector<fs::path> plain = plain_files(run);
  std::vector<std::string> encrypted;
  if (closed != nullptr) {
    set_aside(run, begun.start.number, plain);
    begun.set_aside = names_as_found(run, plain);
  } else {
    for (const fs::path& each : plain) {
      encrypt_file(each, sealer);
    }
    encrypted = names_as_found(run, plain);
    begun.taken_over = earlier.all.empty() ? std::vector<std::string>() : encrypted;
  }
  begun.warning = warning_of(begun, encrypted);
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
