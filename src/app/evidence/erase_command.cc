#include "src/app/evidence/erase_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/access/confirmation.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/evidence/certificate_file.h"
#include "src/app/evidence/erase_plan.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/evidence/certificate.h"
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

// Returns what the first question says about what stays on the disk; "" if wrapped keys go first.
std::string text_of_remains(const Erasure& erasure) {
  if (!erasure.missing_keys.empty() && !erasure.overwritten) {
    return fmt::format(
        " It is encrypted, but {} not there any more: whoever has a copy can open what stays on "
        "the disk until it is reused (--overwrite).",
        erasure.missing_keys.size() == 1
            ? printable(erasure.missing_keys.front()) + " is"
            : counted(std::ssize(erasure.missing_keys), "keys.json file") + " are");
  }
  return erasure.keys.empty() && !erasure.overwritten
             ? " It is not encrypted, and its bytes stay on the disk until they are reused "
               "(--overwrite)."
             : "";
}

void announce(const ErasePlan& plan, const Erasure& erasure, bool is_rest) {
  fmt::print(stderr,
             "The {} {} will be gone for ever: {}, {}.{}\n"
             "Copies elsewhere, in backups, snapshots and other folders, are not reached.\n",
             plan.kind, printable(plan.folder.string()), counted(std::ssize(plan.files), "file"),
             format_bytes(plan.bytes), text_of_remains(erasure));
  if (is_rest) {
    fmt::print(stderr, "This finishes the erasure of {} that was interrupted after {}.\n",
               counted(std::ssize(erasure.files), "file"), erasure.started);
  }
}

// Returns what the plan is to erase, or what an interrupted command has begun to erase.
Erasure erasure_of(const ErasePlan& plan, const EraseOptions& options,
                   const std::optional<Erasure>& draft) {
  Erasure erasure;
  if (draft) {
    erasure = *draft;
    erasure.overwritten = draft->overwritten && options.overwrite;
  } else {
    erasure.kind = plan.kind;
    erasure.uri = file_uri(plan.folder.string());
    erasure.bytes = plan.bytes;
    erasure.keys = plan.keys;
    erasure.missing_keys = plan.missing_keys;
    erasure.overwritten = options.overwrite;
  }
  erasure.reason = options.reason;
  erasure.host = host_name();
  erasure.uid = ::getuid();
  const nlohmann::ordered_json version = version_json();
  erasure.program = fmt::format("trireme {} ({})", version.at("version").get<std::string>(),
                                version.at("commit").get<std::string>());
  return erasure;
}

// Sets which files the erasure is about, or which of them were gone when it was given again.
void list_files(Erasure& erasure, const ErasePlan& plan, const std::optional<Erasure>& draft) {
  std::vector<Subject> left = digests_of(plan);
  if (!draft) {
    erasure.files = std::move(left);
    return;
  }
  refuse_unlisted(plan, left, *draft);
  for (const Subject& file : draft->files) {
    if (!std::binary_search(plan.files.begin(), plan.files.end(), file.name)) {
      erasure.gone_before.push_back(file.name);
    }
  }
  // Whether the interrupted command has overwritten these, or somebody has moved them, is not
  // known.
  std::erase_if(erasure.keys, [&](const std::string& keys) {
    return std::ranges::find(erasure.gone_before, keys) != erasure.gone_before.end();
  });
  std::erase_if(erasure.keys, [&](const std::string& keys) {  // which somebody has emptied
    std::error_code code;
    const bool empty = fs::file_size(plan.folder / keys, code) == 0;
    if (empty) {
      erasure.missing_keys.push_back(keys);
    }
    return empty;
  });
}

void report(const Erasure& erasure, const fs::path& certificate, const EraseOptions& options,
            const SigningKey& key, AuditTrail& audit) {
  const std::string folder = path_of_uri(erasure.uri);
  audit.note(erasure.kind == "dataset" ? "dataset.erased" : "checkpoint.erased",
             {{"kind", erasure.kind},
              {"folder", folder},
              {"files", erasure.files.size()},
              {"bytes", erasure.bytes},
              {"keys", erasure.keys.size()},
              {"overwritten", erasure.overwritten},
              {"certificate", certificate.string()},
              {"certificate_sha256", sha256_hex(read_file(certificate, kMostCertificateBytes))}});
  fmt::print("erased:      {} ({}, {})\ncertificate: {}, signed by the key {}\n", printable(folder),
             counted(std::ssize(erasure.files), "file"), format_bytes(erasure.bytes),
             printable(options.certificate), short_id(key.public_key().id()));
}

// Erases what is planned and writes the certificate. Whatever ends this early: the same command can
// be given again.
void carry_out(const ErasePlan& plan, bool overwrites, Erasure& erasure, const SigningKey& key,
               CertificateFile& certificate) {
  try {
    erase(plan, overwrites);
    erasure.finished = utc_now();
    certificate.finish(certificate_text(erasure, key));
  } catch (...) {
    say(
        fmt::format("not finished, and there is no certificate yet: when what the error below says "
                    "is put right, the same command finishes it, with {}",
                    certificate.draft_path().string()));
    throw;
  }
}

// Returns whether it is the folder of that erasure, and does not exist.
bool is_gone(const fs::path& folder, const Erasure& erasure) {
  std::error_code code;
  const fs::path place = fs::weakly_canonical(fs::absolute(folder), code);
  return !fs::exists(fs::symlink_status(place)) &&
         file_uri((place.has_filename() ? place : place.parent_path()).string()) == erasure.uri;
}

void erase_and_certify(const EraseOptions& options, AuditTrail& audit, const Access& access) {
  const SigningKey key = load_key(options);
  CertificateFile certificate(options.certificate, key);
  const std::optional<Erasure>& draft = certificate.draft();
  if (certificate.finished() && is_gone(options.folder, *certificate.finished())) {
    report(*certificate.finished(), certificate.path(), options, key, audit);
    return;
  }
  const ErasePlan plan =
      draft ? plan_rest(options.folder, *draft) : plan_erasure(fs::path(options.folder));
  check_folder_access(access, Deed::write, plan.folder);
  if (plan.files.empty() && !draft) {
    throw ConfigError(fmt::format("{} holds no file", plan.folder.string()));
  }
  certificate.check_place(plan.folder);
  Erasure erasure = erasure_of(plan, options, draft);
  announce(plan, erasure, draft.has_value());
  confirm_twice(plan.folder.filename().string(), options.confirmed,
                {"erase it", "confirm that nobody shall ever read it", "nothing was erased"});
  list_files(erasure, plan, draft);
  refuse_erasing_beside_run(plan);
  if (!draft) {
    erasure.started = utc_now();
  }
  certificate.begin(erasure);
  carry_out(plan, options.overwrite, erasure, key, certificate);
  report(erasure, certificate.path(), options, key, audit);
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
      "Wrapped keys go first, so that encrypted data is unreadable whatever happens next. If it is "
      "interrupted, give the same command again. "
      "Overwriting reaches no backup and no snapshot, and on SSDs and copy-on-write file systems "
      "the old bytes may remain: encrypt what must be erasable.");
  command.callback([options, access, &audit] { erase_and_certify(*options, audit, access()); });
}

}  // namespace trireme
