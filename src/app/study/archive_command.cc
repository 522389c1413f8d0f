#include "src/app/study/archive_command.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/app/command/output_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/base/units.h"
#include "src/study/anonymity/anonymity.h"
#include "src/study/redaction/redaction.h"
#include "src/study/tar_file.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr int kMostDepth = 6;
struct ArchiveOptions {
  std::string folder, out;
  std::vector<std::string> more;
  bool anonymous = false;
  bool json = false;
};

struct Collected {
  fs::path path;
  std::string name;  // in the archive
  std::string text;
  std::int64_t time = 0;
  std::int64_t secrets = 0;
};

struct LeftOut {
  std::string name;
  std::string why;
};

class Bundle {
 public:
  void add(const fs::path& path, const std::string& name);
  // Does the same with a file that a person has named. Throws ConfigError if it is left out.
  void add_named(const fs::path& path);
  void add_folder(const fs::path& folder, const std::string& name, int depth = 0);
  void redact_all();
  void make_anonymous(const fs::path& folder);
  // Returns the whole archive, with its manifest as the first file. root: its folder in the
  // archive.
  std::string to_tar(const std::string& root, bool anonymous);
  const std::vector<Collected>& files() const { return files_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  std::int64_t secrets() const;

 private:
  void leave_out(const std::string& name, const std::string& why) {
    left_out_.push_back({name, why});
  }
  Json manifest(bool anonymous) const;

  std::vector<Collected> files_;
  std::vector<LeftOut> left_out_;
  std::int64_t bytes_ = 0;
};

// Everything else, such as weights and training data, stays here.
bool has_known_suffix(const fs::path& path) {
  const std::string suffix = path.extension();
  return path.filename() == "DONE" ||
         std::find(kTextSuffixes.begin(), kTextSuffixes.end(), suffix) != kTextSuffixes.end();
}

void Bundle::add(const fs::path& path, const std::string& name) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    throw_errno(errno, "open", path);
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
    leave_out(name, error.what());
    return;
  }
  if (text.find('\0') != std::string::npos) {
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

void Bundle::add_named(const fs::path& path) {
  const std::string file = path.filename().string();
  const auto taken = [&](const std::string& name) {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const Collected& each) { return each.name == name; });
  };
  std::string name = "more/" + file;
  for (int i = 2; taken(name); ++i) {
    name = fmt::format("more/{}/{}", i, file);
  }
  const std::size_t before = left_out_.size();
  add(path, name);
  if (left_out_.size() > before) {
    throw ConfigError(
        fmt::format("--with {} cannot be bundled: {}", path.string(), left_out_.back().why));
  }
}

void Bundle::add_folder(const fs::path& folder, const std::string& name, int depth) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    entries.push_back(entry.path());
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

void Bundle::redact_all() {
  for (Collected& file : files_) {
    Redacted redacted = redact(file.text);
    file.text = std::move(redacted.text);
    file.secrets = redacted.secrets;
    file.name = redact_path(file.name);
  }
  for (LeftOut& each : left_out_) {
    each = {redact_path(each.name), redact(each.why).text};
  }
}

void Bundle::make_anonymous(const fs::path& folder) {
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
    each = {anonymity.apply(each.name), anonymity.apply(each.why)};
  }
}

std::int64_t Bundle::secrets() const {
  std::int64_t sum = 0;
  for (const Collected& file : files_) {
    sum += file.secrets;
  }
  return sum;
}

Json Bundle::manifest(bool anonymous) const {
  Json files = Json::array();
  for (const Collected& file : files_) {
    files.push_back({{"name", file.name},
                     {"bytes", file.text.size()},
                     {"sha256", sha256_hex(file.text)},
                     {"secrets_removed", file.secrets}});
  }
  Json left_out = Json::array();
  for (const LeftOut& each : left_out_) {
    left_out.push_back({{"name", each.name}, {"why", each.why}});
  }
  return {{"schema", 1},
          {"program", version_json()},
          {"anonymous", anonymous},
          {"secrets_removed", secrets()},
          {"files", files},
          {"left_out", left_out}};
}

std::string Bundle::to_tar(const std::string& root, bool anonymous) {
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

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

// Returns the archive's file if none is named: beside the folder if the current one lies in it, as
// with `trireme archive .`, so that the folder stays as it is.
std::string default_output(const fs::path& folder, const std::string& root) {
  const fs::path whole = fs::canonical(folder);
  if (!is_within(fs::current_path(), whole)) {
    return root + ".tar";
  }
  if (whole == whole.root_path()) {
    throw ConfigError("there is no place beside the root folder: name the archive with -o FILE");
  }
  return (whole.parent_path() / (root + ".tar")).lexically_proximate(fs::current_path());
}

void archive(const ArchiveOptions& options) {
  const fs::path folder = fs::path(options.folder).lexically_normal();
  if (options.folder.empty()) {
    throw NotFound("RUN is empty: give the folder of a run, a scaling study or an acceptance");
  }
  if (!fs::is_directory(folder)) {
    throw NotFound(
        fmt::format("{} is not a folder: give that of a run (run.dir), a scaling study "
                    "or an acceptance",
                    options.folder));
  }
  const fs::path last = fs::canonical(folder).filename();
  const std::string root = options.anonymous || last.empty() || last.string().size() > 60
                               ? "archive"
                               : redact_path(last.string());
  const std::string out = options.out.empty() ? default_output(folder, root) : options.out;
  std::vector<std::string> inputs = options.more;
  inputs.push_back(options.folder);
  check_output(out, inputs);
  Bundle bundle;
  bundle.add_folder(folder, "");
  for (const std::string& path : options.more) {
    bundle.add_named(path);
  }
  if (bundle.files().empty()) {
    throw NotFound(fmt::format("{} holds no log, configuration or result", options.folder));
  }
  if (options.out.empty() ? fs::exists(fs::symlink_status(out)) : !may_become_tar(out)) {
    throw PolicyError(fmt::format("{} exists{}", printable(out),
                                  options.out.empty() ? ": name the archive with -o FILE"
                                                      : " and is no archive: name another file"));
  }
  bundle.redact_all();
  if (options.anonymous) {
    bundle.make_anonymous(folder);
  }
  const std::string tar = bundle.to_tar(root, options.anonymous);
  write_named_file(out, tar);
  if (options.json) {
    print_json({{"schema", 1},
                {"file", out},
                {"bytes", tar.size()},
                {"files", bundle.files().size()},
                {"left_out", bundle.left_out().size()},
                {"secrets_removed", bundle.secrets()}});
    return;
  }
  fmt::print("{}: {} of {}, {} removed, {} left out\n", printable(out),
             counted(static_cast<std::int64_t>(bundle.files().size()), "file"),
             format_bytes(static_cast<std::int64_t>(tar.size())),
             counted(bundle.secrets(), "secret"), bundle.left_out().size());
  fmt::print("look at {}/MANIFEST.json in it before you send it\n", printable(root));
}

}  // namespace

void add_archive_command(CommandLine& app) {
  CommandLine& command =
      app.add_command("archive", "Bundle logs, configuration and results for a vendor");
  const auto options = std::make_shared<ArchiveOptions>();
  command.add_option("RUN", options->folder, "Folder of a run, a scaling study or an acceptance")
      .required();
  command
      .add_option("-o,--out", options->out,
                  "Write the archive to FILE (default: RUN.tar, or archive.tar with --anonymous; "
                  "beside RUN "
                  "if this folder lies in RUN)")
      .type_name("FILE");
  command
      .add_option("--with", options->more,
                  "Add another file, such as a job's output; can be repeated")
      .one_value_per_use()
      .type_name("FILE");
  command.add_flag("--anonymous", options->anonymous,
                   "Replace names of hosts and users, and addresses, by pseudonyms");
  command.add_flag("--json", options->json, "Print a summary as JSON");
  command.footer(
      "Examples:\n"
      "  trireme archive runs/first --with train-4711.out -o case-1234.tar\n"
      "  trireme archive accept-20261124-160000 --anonymous\n"
      "Secrets are always removed: values of names such as password or api_key, keys of known "
      "forms, and private keys. A secret that looks like ordinary text cannot be recognized, so "
      "look at the archive before you send it. Weights, training data and files that are no text "
      "are never included; MANIFEST.json lists what is in the archive and what is not.");
  command.callback([options] { archive(*options); });
}

}  // namespace trireme
