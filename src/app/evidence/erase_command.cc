#include "src/app/evidence/erase_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/workers.h"
#include "src/app/access/confirmation.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/evidence/erase_plan.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/evidence/certificate.h"
#include "src/evidence/file_digests.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;

struct EraseOptions {
  std::string folder;
  std::string certificate;
  std::string key;
  std::string reason;
  std::vector<std::string> confirmed;
  bool overwrite = false;
};

SigningKey load_key(const EraseOptions& options) {
  const fs::path path =
      options.key.empty() ? site_audit_config(environ).key : fs::path(options.key);
  if (path.empty()) {
    throw ConfigError(
        "no key to sign the certificate: name one with --sign, or set audit.key in the site's file "
        "(`trireme audit keygen --out FILE` makes one)");
  }
  return SigningKey::load(path);
}

// Makes an empty file, so that a certificate that cannot be written is known before anything is
// erased. It is removed unless the certificate was written.
class CertificateFile {
 public:
  CertificateFile(const fs::path& path, const ErasePlan& plan)
      : path_(fs::absolute(path).lexically_normal()) {
    std::error_code none;
    const fs::path place = fs::weakly_canonical(path_, none);
    const auto [in_plan, in_path] =
        std::mismatch(plan.folder.begin(), plan.folder.end(), place.begin(), place.end());
    if (in_plan == plan.folder.end()) {
      throw ConfigError(
          fmt::format("--certificate: {} lies in the folder that is erased", path.string()));
    }
    if (fs::exists(fs::symlink_status(path_))) {
      throw PolicyError(fmt::format(
          "--certificate: {} exists, and a certificate replaces no file: choose another name",
          path.string()));
    }
    File::create_new(path_).close();
  }
  ~CertificateFile() {
    if (!is_written_) {
      std::error_code ignored;
      fs::remove(path_, ignored);
    }
  }
  CertificateFile(const CertificateFile&) = delete;
  CertificateFile& operator=(const CertificateFile&) = delete;

  void write(const std::string& text) {
    is_written_ = true;  // whatever remains of it is of use, because the data is gone
    write_file_durably(path_, text);
  }

 private:
  fs::path path_;
  bool is_written_ = false;
};

std::vector<Subject> digests_of(const ErasePlan& plan) {
  std::vector<fs::path> paths;
  for (const std::string& name : plan.files) {
    paths.push_back(plan.folder / name);
  }
  const std::vector<FileDigest> digests = digest_files(paths, available_processors());
  std::vector<Subject> files;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (digests[i].sha256.empty()) {
      throw IoError(fmt::format(
          "nothing was erased, because the certificate needs the digest of every file: {}",
          digests[i].trouble));
    }
    files.push_back({plan.files[i], digests[i].sha256});
  }
  return files;
}

void announce(const ErasePlan& plan, bool overwrites) {
  fmt::print(stderr,
             "The {} {} will be gone for ever: {}, {}.{}\n"
             "Copies elsewhere, in backups, snapshots and other folders, are not reached.\n",
             plan.kind, printable(plan.folder.string()), counted(std::ssize(plan.files), "file"),
             format_bytes(plan.bytes),
             plan.keys.empty() && !overwrites
                 ? " It is not encrypted, and its bytes stay on the disk until they are reused "
                   "(--overwrite)."
                 : "");
}

Erasure erasure_of(const ErasePlan& plan, const EraseOptions& options) {
  Erasure erasure;
  erasure.kind = plan.kind;
  erasure.uri = file_uri(plan.folder.string());
  erasure.bytes = plan.bytes;
  erasure.keys = plan.keys;
  erasure.overwritten = options.overwrite;
  erasure.reason = options.reason;
  erasure.host = host_name();
  erasure.uid = ::getuid();
  const nlohmann::ordered_json version = version_json();
  erasure.program = fmt::format("trireme {} ({})", version.at("version").get<std::string>(),
                                version.at("commit").get<std::string>());
  return erasure;
}

void erase_and_certify(const EraseOptions& options, AuditTrail& audit, const Access& access) {
  const SigningKey key = load_key(options);
  const ErasePlan plan = plan_erasure(fs::path(options.folder));
  check_folder_access(access, Deed::write, plan.folder);
  if (plan.files.empty()) {
    throw ConfigError(fmt::format("{} holds no file", plan.folder.string()));
  }
  CertificateFile certificate(options.certificate, plan);
  announce(plan, options.overwrite);
  confirm_twice(plan.folder.filename().string(), options.confirmed,
                {"erase it", "confirm that nobody shall ever read it", "nothing was erased"});
  Erasure erasure = erasure_of(plan, options);
  erasure.files = digests_of(plan);
  refuse_erasing_beside_run(plan);
  erasure.started = utc_now();
  erase(plan, options.overwrite);
  erasure.finished = utc_now();
  const std::string text = certificate_text(erasure, key);
  certificate.write(text);
  audit.note(plan.kind == "dataset" ? "dataset.erased" : "checkpoint.erased",
             {{"kind", plan.kind},
              {"folder", plan.folder.string()},
              {"files", plan.files.size()},
              {"bytes", plan.bytes},
              {"keys", plan.keys.size()},
              {"overwritten", options.overwrite},
              {"certificate", fs::absolute(options.certificate).lexically_normal().string()},
              {"certificate_sha256", sha256_hex(text)}});
  fmt::print("erased:      {} ({}, {})\ncertificate: {}, signed by the key {}\n",
             printable(plan.folder.string()), counted(std::ssize(plan.files), "file"),
             format_bytes(plan.bytes), printable(options.certificate),
             short_id(key.public_key().id()));
}

}  // namespace

void add_erase_command(CommandLine& app, AuditTrail& audit, const AccessSource& access) {
  CommandLine& command =
      app.add_command("erase", "Erase a checkpoint or a dataset, and certify that");
  const auto options = std::make_shared<EraseOptions>();
  command
      .add_option("DIR", options->folder,
                  "A checkpoint, a folder of checkpoints or a dataset, with everything in it")
      .required();
  command.add_option("--certificate", options->certificate, "The new file of the certificate")
      .written()
      .required()
      .type_name("FILE");
  command
      .add_option("--sign", options->key,
                  "Private key that signs the certificate; default: audit.key of the site")
      .type_name("FILE");
  command.add_option("--reason", options->reason, "Why, for the certificate").type_name("TEXT");
  command.add_flag("--overwrite", options->overwrite,
                   "Overwrite all files with zeros before they are removed; without it, only those "
                   "with wrapped keys are overwritten");
  command
      .add_option("--confirm", options->confirmed,
                  "The last part of DIR; given twice, it replaces the two questions")
      .one_value_per_use()
      .type_name("NAME");
  command.footer(
      "Examples:\n"
      "  trireme erase runs/first/checkpoints/step-00000100 --sign site.key \\\n"
      "    --certificate erased.json --reason 'the retention period is over'\n"
      "  trireme verify erased.json --trust trust.pem\n"
      "Wrapped keys go first, so that encrypted data is unreadable whatever happens next. "
      "Overwriting reaches no backup and no snapshot, and on SSDs and copy-on-write file systems "
      "the old bytes may remain: encrypt what must be erasable.");
  command.callback([options, access, &audit] { erase_and_certify(*options, audit, access()); });
}

}  // namespace trireme
