#include "src/app/study/archive_bundle.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/run_text.h"
#include "src/base/units.h"
#include "src/study/anonymity/anonymity.h"
#include "src/study/records/known_records.h"
#include "src/study/redaction/redaction.h"
#include "src/study/tar_file.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr int kMostDepth = 6;
constexpr std::string_view kNamedFolder = "more/";  // has the files that a person has named
constexpr std::int64_t kMostListBytes = std::int64_t{16} << 20;

// Everything else, such as weights and training data, stays here.
bool has_known_suffix(const fs::path& path) {
  const std::string suffix = path.extension();
  return path.filename() == "DONE" ||
         std::find(kTextSuffixes.begin(), kTextSuffixes.end(), suffix) != kTextSuffixes.end();
}

// Returns the name, or one with a number if it is taken by a file or a folder. Adds it to `taken`.
std::string free_name(const std::string& name, std::set<std::string>& taken) {
  fs::path path = name;
  for (int i = 2; taken.contains(path); ++i) {
    path.replace_filename(fmt::format("{}-{}{}", fs::path(name).stem().string(), i,
                                      fs::path(name).extension().string()));
  }
  taken.insert(path);
  return path;
}

// Returns whether a file is called like a record of the program, so that it is damaged if it is
// none.
bool has_name_of_record(const fs::path& path) {
  const fs::path suffix = path.extension();
  return is_known_file(path.stem().string()) &&
         (suffix == ".json" || suffix == ".jsonl" || path.filename() == "config.yaml" ||
          path.filename() == "DONE");
}

// Removes lines with bytes of zero, which a crash can leave and no reader uses.
void remove_torn_lines(std::string& lines) {
  for (std::size_t zero = lines.find('\0'); zero != std::string::npos;) {
    const std::size_t begin = zero == 0 ? 0 : lines.rfind('\n', zero) + 1;
    const std::size_t end = std::min(lines.find('\n', zero), lines.size());
    lines.erase(begin, end + 1 - begin);
    zero = lines.find('\0', begin);
  }
}

HiddenTexts hidden_texts_of(const std::string& list) {
  if (list.empty()) {
    return {};
  }
  try {
    return HiddenTexts(read_file(list, kMostListBytes));
  } catch (const DataError& error) {
    throw data_error_in(list, error);
  }
}

}  // namespace

ArchiveBundle::ArchiveBundle(const std::string& list)
    : hidden_(hidden_texts_of(list)), list_(list) {}

void ArchiveBundle::add(const fs::path& path, const std::string& name) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    throw_errno(errno, "open", path);
  }
  if (std::error_code gone; !list_.empty() && fs::equivalent(path, list_, gone)) {
    leave_out(name, "the list of --hide");
    return;
  }
  if (!S_ISREG(facts.st_mode)) {
    leave_out(name, "not a regular file");
    return;
  }
  if (facts.st_size > kMostFileBytes || bytes_ + facts.st_size > kMostBytes) {
    leave_out(name, fmt::format("too large ({})", format_bytes(facts.st_size)));
    return;
  }
  std::string text;
  try {
    text = read_file(path, kMostFileBytes);
  } catch (const Error& error) {
    leave_out(name, error.what(), true);
    return;
  }
  if (path.extension() == ".jsonl") {
    remove_torn_lines(text);
  }
  const bool has_only_torn_lines = text.empty() && facts.st_size > 0;
  if (has_only_torn_lines || text.find('\0') != std::string::npos) {
    leave_out(name, "not a text, so that it cannot be searched for secrets");
    return;
  }
  if (is_sealed_text(text)) {
    leave_out(name, "encrypted; what `trireme log` prints can be added with --with");
    return;
  }
  bytes_ += static_cast<std::int64_t>(text.size());
  files_.push_back({path, name, std::move(text), facts.st_mtim.tv_sec, 0});
}

void ArchiveBundle::add_named(const fs::path& path) {
  const std::string file = path.filename().string();
  const auto taken = [&](const std::string& name) {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const Collected& each) { return each.name == name; });
  };
  std::string name = std::string(kNamedFolder) + file;
  for (int i = 2; taken(name); ++i) {
    name = fmt::format("{}{}/{}", kNamedFolder, i, file);
  }
  const std::size_t before = left_out_.size();
  add(path, name);
  if (left_out_.size() > before) {
    throw ConfigError(
        fmt::format("--with {} cannot be bundled: {}", path.string(), left_out_.back().why));
  }
}

void ArchiveBundle::add_folder(const fs::path& folder, const std::string& name, int depth) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && depth == 0) {
    throw_errno(error.value(), "read", folder);
  }
  if (error) {
    leave_out(name + "/", error.message(), true);
    return;
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    const std::string own = name + (name.empty() ? "" : "/") + path.filename().string();
    const fs::file_status status = fs::symlink_status(path);
    if (fs::is_directory(status)) {
      const bool data = path.filename() == "checkpoints" || path.filename() == "tensorboard" ||
                        path.filename() == kLogKeysFolder;
      if (data || depth == kMostDepth) {
        leave_out(own + "/", data ? "weights, figures and keys stay here" : "too deep");
      } else {
        add_folder(path, own, depth + 1);
      }
    } else if (has_known_suffix(path)) {
      add(path, own);
    } else {
      leave_out(own, "no log, configuration or result by its name");
    }
  }
}

// Secrets come first: a listed text may be a part of what gives them away.
void ArchiveBundle::redact_all() {
  for (Collected& file : files_) {
    const Redacted redacted = redact(file.text);
    Redacted listed = hidden_.apply(redacted.text);
    file.text = std::move(listed.text);
    file.removed = redacted.secrets + listed.secrets;
    file.name = redacted_name(file.name);
  }
  for (LeftOut& each : left_out_) {
    each.name = redacted_name(each.name);
    each.why = hidden_.apply(redact(each.why).text).text;
  }
}

std::string ArchiveBundle::redacted_name(const std::string& name) const {
  return hidden_.apply(redact_path(name)).text;
}

void ArchiveBundle::make_anonymous(const fs::path& folder) {
  Anonymity anonymity;
  for (const Collected& file : files_) {
    anonymity.avoid(file.text);
    anonymity.avoid(file.name);
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) {
    anonymity.add_host(host.data());
  }
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) == 0) {
    for (const uid_t user : {facts.st_uid, ::getuid()}) {
      const struct passwd* entry = ::getpwuid(user);
      anonymity.add_user(entry == nullptr ? "" : entry->pw_name);
    }
  }
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    const char* value = std::getenv(variable);
    anonymity.add_user(value == nullptr ? "" : value);
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (const Collected& file : files_) {
      anonymity.learn(file.text);
    }
  }
  for (Collected& file : files_) {
    file.text = anonymity.apply(file.text);
    file.name = anonymity.apply(file.name);
  }
  for (LeftOut& each : left_out_) {
    each.name = anonymity.apply(each.name);
    each.why = anonymity.apply(each.why);
  }
}

void ArchiveBundle::keep_known_records() {
  is_strict_ = true;
  std::random_device random;
  KnownRecords records(fmt::format("{:06x}", random() & 0xFFFFFFU));
  std::shuffle(files_.begin(), files_.end(), random);  // the order of names would tell something
  std::shuffle(left_out_.begin(), left_out_.end(), random);
  std::vector<Collected> kept;
  for (Collected& file : files_) {
    try {
      KnownRecords::Kept record = records.keep(file.path.filename(), file.text);
      Redacted listed = hidden_.apply(record.text);
      file.text = std::move(listed.text);
      file.removed = record.removed + listed.secrets;
      file.name = hidden_.apply(records.keep_path(file.name)).text;
      kept.push_back(std::move(file));
    } catch (const DataError& error) {
      if (file.name.starts_with(kNamedFolder)) {
        throw ConfigError(fmt::format("--with {} cannot be bundled with --strict: {}",
                                      file.path.string(), error.what()));
      }
      const bool is_damaged = has_name_of_record(file.path);
      leave_out(file.name, is_damaged ? "damaged" : "no record of this program", is_damaged);
    }
  }
  files_ = std::move(kept);
  for (LeftOut& each : left_out_) {
    each.name = hidden_.apply(records.keep_path(each.name)).text;
    each.why = each.could_not_be_read && each.why != "damaged" ? "could not be read" : each.why;
  }
}

std::int64_t ArchiveBundle::removed() const {
  std::int64_t sum = 0;
  for (const Collected& file : files_) {
    sum += file.removed;
  }
  return sum;
}

Json ArchiveBundle::manifest(bool anonymous) const {
  Json files = Json::array();
  for (const Collected& file : files_) {
    files.push_back({{"name", file.name},
                     {"bytes", file.text.size()},
                     {"sha256", sha256_hex(file.text)},
                     {is_strict_ ? "removed" : "secrets_removed", file.removed}});
  }
  Json left_out = Json::array();
  for (const LeftOut& each : left_out_) {
    left_out.push_back({{"name", each.name}, {"why", each.why}});
  }
  return {{"schema", 1},
          {"program", version_json()},
          {"anonymous", anonymous},
          {"strict", is_strict_},
          {is_strict_ ? "removed" : "secrets_removed", removed()},
          {"files", files},
          {"left_out", left_out}};
}

std::string ArchiveBundle::to_tar(const std::string& root, bool anonymous) {
  std::string entries;
  std::int64_t newest = 0;
  std::vector<Collected> kept;
  std::set<std::string> names = {"MANIFEST.json"};
  for (const Collected& file : files_) {
    for (fs::path folder = fs::path(file.name).parent_path(); !folder.empty();
         folder = folder.parent_path()) {
      names.insert(folder);
    }
  }
  for (Collected& file : files_) {
    try {
      file.name = free_name(file.name, names);
      entries += tar_entry(root + "/" + file.name, file.text, file.time);
      newest = std::max(newest, file.time);
      kept.push_back(std::move(file));
    } catch (const ConfigError& error) {
      leave_out(file.name, error.what());
    }
  }
  files_ = std::move(kept);
  return tar_entry(root + "/MANIFEST.json", json_text(manifest(anonymous)) + "\n", newest) +
         entries + tar_end();
}

}  // namespace trireme
