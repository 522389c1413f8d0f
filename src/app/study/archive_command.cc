#include "src/app/study/archive_command.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/app/command/output_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/study/archive_bundle.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/study/tar_file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct ArchiveOptions {
  std::string folder, out, hide;
  std::vector<std::string> more;
  bool anonymous = false;
  bool strict = false;
  bool json = false;
};

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

void warn_of_unread(const std::vector<LeftOut>& left_out) {
  for (const LeftOut& each : left_out) {
    if (each.could_not_be_read) {
      fmt::print(stderr, "trireme: left out {}: {}\n", printable(each.name), printable(each.why));
    }
  }
}

void remove_texts(const ArchiveOptions& options, const fs::path& folder, ArchiveBundle& bundle) {
  if (options.strict) {
    bundle.keep_known_records();
    if (bundle.files().empty()) {
      throw NotFound(
          fmt::format("{} holds no record of this program that can be read: --strict "
                      "takes nothing else",
                      options.folder));
    }
    return;
  }
  bundle.redact_all();
  if (options.anonymous) {
    bundle.make_anonymous(folder);
  }
}

void print_summary(const ArchiveOptions& options, const std::string& out, std::int64_t bytes,
                   const ArchiveBundle& bundle) {
  const auto files = static_cast<std::int64_t>(bundle.files().size());
  if (options.json) {
    print_json({{"schema", 1},
                {"file", out},
                {"bytes", bytes},
                {"files", files},
                {"left_out", bundle.left_out().size()},
                {options.strict ? "removed" : "secrets_removed", bundle.removed()}});
    return;
  }
  fmt::print("{}: {} of {}, {} removed, {} left out\n", printable(out), counted(files, "file"),
             format_bytes(bytes), counted(bundle.removed(), options.strict ? "item" : "secret"),
             bundle.left_out().size());
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
  ArchiveBundle bundle(options.hide);
  const std::string root =
      options.anonymous || options.strict || last.empty() || last.string().size() > 60
          ? "archive"
          : bundle.redacted_name(last.string());
  const std::string out = options.out.empty() ? default_output(folder, root) : options.out;
  std::vector<std::string> inputs = options.more;
  inputs.push_back(options.folder);
  if (!options.hide.empty()) {
    inputs.push_back(options.hide);
  }
  check_output(out, inputs);
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
  remove_texts(options, folder, bundle);
  const std::string tar = bundle.to_tar(root, options.anonymous || options.strict);
  write_named_file(out, tar);
  warn_of_unread(bundle.left_out());
  print_summary(options, out, static_cast<std::int64_t>(tar.size()), bundle);
  if (!options.json) {
    fmt::print("look at {}/MANIFEST.json in it before you send it\n", printable(root));
  }
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
                  "Write the archive to FILE (default: RUN.tar, or archive.tar with --anonymous "
                  "and --strict; beside RUN if this folder lies in RUN)")
      .type_name("FILE");
  command
      .add_option("--with", options->more,
                  "Add another file, such as a job's output; can be repeated")
      .one_value_per_use()
      .type_name("FILE");
  command.add_flag("--anonymous", options->anonymous,
                   "Replace names of hosts and users, and addresses, by pseudonyms");
  command.add_flag("--strict", options->strict,
                   "Take only records of this program, and of them only figures and its own words: "
                   "no other text leaves, so that no secret and no name can");
  command
      .add_option("--hide", options->hide,
                  "Also remove the texts in FILE, one per line, wherever they stand, such as names "
                  "of projects and people")
      .type_name("FILE");
  command.add_flag("--json", options->json, "Print a summary as JSON");
  command.footer(
      "Examples:\n"
      "  trireme archive runs/first --with train-4711.out -o case-1234.tar\n"
      "  trireme archive accept-20261124-160000 --anonymous --hide names.txt\n"
      "  trireme archive runs/first --strict\n"
      "Secrets are always removed: values of names such as password or api_key, keys of known "
      "forms, and private keys. A secret that looks like ordinary text cannot be recognized: list "
      "it for --hide, and look at the archive before you send it, or use --strict, which keeps no "
      "text that is not this program's own. Weights, training data and files that are no text are "
      "never included; MANIFEST.json lists what is in the archive and what is not.");
  command.callback([options] { archive(*options); });
}

}  // namespace trireme
