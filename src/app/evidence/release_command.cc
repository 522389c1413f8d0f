#include "src/app/evidence/release_command.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include "io/checkpoint/intact_step.h"
#include "src/app/access/output_place.h"
#include "src/app/evidence/release_check.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/lock_within.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/evidence/keys.h"
#include "src/evidence/statement.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct ReleaseOptions {
  std::string checkpoint;
  std::string file;
  std::string recipient;
  std::string reason;
  std::string key;
  std::string trust;
};

std::string user_of_release() {
  const passwd* const entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

// Keeps other processes from changing releases in the folder of this file, as long as it lives: a
// signature that another process has added meanwhile would be lost. Has no effect on a file system
// without locks.
class ReleaseLock {
 public:
  explicit ReleaseLock(const fs::path& file) {
    constexpr std::chrono::seconds kLongestWait{10};
    const fs::path folder = fs::absolute(file).parent_path();
    folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder_) {
      (void)lock_within(folder_.get(), kLongestWait, folder);
    }
  }

 private:
  UniqueHandle<FileDescriptorTraits> folder_;
};

Envelope read_release(const std::string& file) {
  return parse_envelope(read_file(file, kMostReleaseBytes), file);
}

// Throws DataError if the release was changed since somebody signed it.
void check_signatures_fit(const Envelope& envelope, const std::string& file) {
  if (const std::optional<std::string> key = first_misfit(envelope)) {
    throw DataError(fmt::format(
        "{}: the signature of the key {} does not fit: the release or the signature was changed "
        "after it was signed; ask for a new one with `trireme release request`",
        printable(file), printable(short_id(*key))));
  }
}

// Compares a release with the checkpoint at the place that it names, if this host has it. Throws
// DataError if the release says something else.
void check_checkpoint(const Release& release, const std::string& file) {
  constexpr const char* kAdvice = "ask for a new one with `trireme release request`";
  const fs::path place = path_of_uri(release.uri);
  const StepFolder step = place.is_absolute() ? inspect_step(place) : StepFolder{};
  if (!step.manifest) {
    say(
        fmt::format("note: this host has no whole checkpoint at {}, so that what the release says "
                    "of it could not be compared",
                    release.uri));
    return;
  }
  if (step.manifest_sha256 != release.manifest_sha256) {
    throw DataError(fmt::format("{}: the checkpoint at {} has another manifest, sha256:{}: {}",
                                printable(file), printable(release.uri), step.manifest_sha256,
                                kAdvice));
  }
  if (step.manifest->meta.label != release.label) {
    throw DataError(fmt::format("{}: the checkpoint at {} has another label, {}: {}",
                                printable(file), printable(release.uri),
                                label_for_releasers(step.manifest->meta.label), kAdvice));
  }
}

void print_release(const Release& release, const Envelope& envelope) {
  fmt::print("checkpoint {}\nmanifest   sha256:{}\nlabel      {}\nrecipient  {}\nreason     {}\n",
             printable(release.uri), printable(release.manifest_sha256),
             label_for_releasers(release.label), printable(release.recipient),
             printable(release.reason));
  fmt::print("requested  by {} on {}, {}\nsignatures {}\n", printable(release.user),
             printable(release.host), printable(release.time), envelope.signatures.size());
}

// Accepts what a release takes as recipient or reason.
Check some_text() { return {"", fault_of_release_text}; }

void check_is_new(const fs::path& file) {
  if (fs::exists(fs::symlink_status(file))) {
    throw PolicyError(
        fmt::format("--out: {} exists, and a release replaces no file", printable(file.string())));
  }
}

void request(const ReleaseOptions& options) {
  check_is_new(options.file);
  check_in_no_data("--out", options.file);
  std::vector<std::string> skipped;
  const StepFolder step = find_intact_step(options.checkpoint, skipped);
  for (const std::string& why : skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  const std::string path = fs::absolute(step.path).lexically_normal().string();
  const Release release{step.manifest_sha256, file_uri(path), step.manifest->meta.label,
                        options.recipient,    options.reason, user_of_release(),
                        host_name(),          utc_now()};
  const Envelope envelope =
      make_envelope(std::string(kReleaseType), release_text(release), nullptr);
  const ReleaseLock lock(options.file);
  check_is_new(options.file);  // reading the checkpoint may have taken long
  write_named_file(options.file, to_text(envelope) + "\n");
  print_release(release, envelope);
}

void sign(const ReleaseOptions& options) {
  const SigningKey key = SigningKey::load(options.key);
  const ReleaseLock lock(options.file);
  Envelope envelope = read_release(options.file);
  const Release release = release_in(envelope, options.file);
  check_signatures_fit(envelope, options.file);
  check_checkpoint(release, options.file);
  const std::string& id = key.public_key().id();
  const bool has_signed =
      std::any_of(envelope.signatures.begin(), envelope.signatures.end(),
                  [&](const EnvelopeSignature& each) { return each.key_id == id; });
  if (has_signed) {
    throw PolicyError(fmt::format(
        "{}: this key has signed already, and the other signatures are for other people to give",
        printable(options.file)));
  }
  envelope.signatures.push_back(
      make_envelope(envelope.payload_type, envelope.payload, &key).signatures.at(0));
  envelope.signatures.back().public_key = key.public_key().to_der();
  write_named_file(options.file, to_text(envelope) + "\n");
  print_release(release, envelope);
  fmt::print("signed     with the key {}\n", short_id(id));
}

void show_release(const ReleaseOptions& options) {
  const Envelope envelope = read_release(options.file);
  const Release release = release_in(envelope, options.file);
  print_release(release, envelope);
  check_signatures_fit(envelope, options.file);
  check_checkpoint(release, options.file);
  if (options.trust.empty()) {
    return;
  }
  const SignatureFinding found = find_signature(envelope, load_trusted_keys(options.trust));
  if (found.state == SignatureState::forged) {
    throw DataError(
        fmt::format("{}: the signature of {} does not fit: the release or the "
                    "signature was changed after it was signed",
                    printable(options.file), printable(found.signer())));
  }
  if (found.state != SignatureState::trusted) {
    throw PolicyError(fmt::format("{}: no trusted key has signed it", printable(options.file)));
  }
  fmt::print("signed     by {}\n", printable(found.signer()));
}

}  // namespace

void add_release_command(CommandLine& app) {
  CommandLine& release =
      app.add_command("release", "Let several people sign that a checkpoint may be exported");
  release.require_command();
  release.footer("Example:\n  trireme release show release.json");

  const auto asking = std::make_shared<ReleaseOptions>();
  CommandLine& ask = release.add_command("request", "Ask for the release of a checkpoint");
  ask.add_option("CHECKPOINT", asking->checkpoint,
                 "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required();
  ask.add_option("--out", asking->file, "The new file with the release")
      .required()
      .type_name("FILE");
  ask.add_option("--recipient", asking->recipient, "Who shall get it")
      .required()
      .check(some_text());
  ask.add_option("--reason", asking->reason, "Why").required().check(some_text());
  ask.footer(
      "Example:\n"
      "  trireme release request runs/first/checkpoints --out release.json \\\n"
      "    --recipient 'University X' --reason 'joint paper'");
  ask.callback([asking] { request(*asking); });

  const auto signing = std::make_shared<ReleaseOptions>();
  CommandLine& agree = release.add_command("sign", "Sign a release with one's own key");
  agree.add_option("FILE", signing->file, "The file with the release").required();
  agree.add_option("--key", signing->key, "The private key, as `trireme audit keygen` makes it")
      .required()
      .type_name("FILE");
  agree.footer("Example:\n  trireme release sign release.json --key sara.key");
  agree.callback([signing] { sign(*signing); });

  const auto showing = std::make_shared<ReleaseOptions>();
  CommandLine& look = release.add_command("show", "Print a release, and who has signed it");
  look.add_option("FILE", showing->file, "The file with the release").required();
  look.add_option("--trust", showing->trust, "Public keys whose signatures count")
      .type_name("FILE");
  look.footer("Example:\n  trireme release show release.json --trust releasers.pem");
  look.callback([showing] { show_release(*showing); });
}

}  // namespace trireme
