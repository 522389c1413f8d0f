#include "src/app/evidence/release_check.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/evidence/keys.h"
#include "src/evidence/statement.h"
#include "src/policy/root_file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostTrustBytes = 1 << 20;

bool needs_release(const Policy& policy, const std::optional<Label>& label) {
  const ReleaseRule& rule = *policy.release;
  return !label || rule.above.empty() ||
         policy.rank_of(label->classification) > policy.rank_of(rule.above);
}

// Only root may say who the releasers are.
std::vector<TrustedKey> releasers_of(const ReleaseRule& rule) {
  const std::optional<std::string> text = read_root_file(rule.keys, kMostTrustBytes);
  if (!text) {
    throw PolicyError(fmt::format("{}, which holds the releasers' keys, does not exist",
                                  printable(rule.keys.string())));
  }
  std::vector<TrustedKey> keys = parse_trusted_keys(*text, rule.keys.string());
  // A release states when it was requested, which says nothing about when somebody signs it.
  std::erase_if(keys, [](const TrustedKey& key) { return key.revoked.has_value(); });
  if (std::ssize(keys) < rule.signers) {
    throw PolicyError(fmt::format(
        "{} holds {} keys, but the policy asks for {} signers, so that nothing can be released",
        printable(rule.keys.string()), keys.size(), rule.signers));
  }
  return keys;
}

// Returns the SHA-256 of the manifest's file, which has not changed since it was parsed.
std::string manifest_digest(const fs::path& step_folder, const Manifest& manifest) {
  const fs::path path = step_folder / kManifestName;
  const std::string text = read_file(path);
  if (parse_manifest(text, path.string()).seal != manifest.seal) {
    throw DataError(fmt::format("{}: it changed while it was read", printable(path.string())));
  }
  return sha256_hex(text);
}

// The manifest alone says what is released, but the releasers have only read what the release says
// of it. Throws PolicyError.
void check_label(const Release& release, const Manifest& manifest, const fs::path& step_folder,
                 const std::string& origin) {
  if (release.label != manifest.meta.label) {
    throw PolicyError(fmt::format(
        "{}: it gives the label {} to the checkpoint {}, which has the label {}: ask for another "
        "one with `trireme release request`",
        printable(origin), label_for_releasers(release.label), printable(step_folder.string()),
        label_for_releasers(manifest.meta.label)));
  }
}

// Returns the place that a release names, or "" if that is this folder.
std::string other_place(const Release& release, const fs::path& step_folder) {
  std::error_code none;
  return fs::equivalent(path_of_uri(release.uri), step_folder, none) ? "" : release.uri;
}

struct ReadRelease {
  Envelope envelope;
  Release release;
  std::string origin;  // the file's path
};

ReadRelease read_release(const fs::path& file) {
  const std::string origin = file.string();
  Envelope envelope = parse_envelope(read_file(file, kMostReleaseBytes), origin);
  Release release = release_in(envelope, origin);
  return {std::move(envelope), std::move(release), origin};
}

// Returns the release of this checkpoint among the files. Throws PolicyError.
ReadRelease release_of(const Manifest& manifest, const fs::path& step_folder,
                       const ReleaseFiles& files) {
  const std::string digest = manifest_digest(step_folder, manifest);
  std::vector<std::string> others;
  for (const fs::path& file : files) {
    ReadRelease read = read_release(file);
    if (read.release.manifest_sha256 == digest) {
      return read;
    }
    others.push_back(fmt::format("{}: it releases another checkpoint, {}", printable(read.origin),
                                 printable(read.release.uri)));
  }
  throw PolicyError(fmt::format("{} has no release here: {}", printable(step_folder.string()),
                                fmt::join(others, "; ")));
}

}  // namespace

std::string label_for_releasers(const std::optional<Label>& label) {
  return label ? label->to_string() : "(none)";
}

Release release_in(const Envelope& envelope, const std::string& origin) {
  if (envelope.payload_type != kReleaseType) {
    throw DataError(fmt::format("{}: it holds '{}' and not a release", printable(origin),
                                printable(envelope.payload_type)));
  }
  return parse_release(envelope.payload, origin);
}

void check_release_files(const Access& access, const ReleaseFiles& files) {
  const Policy* const policy = access.policy();
  if (policy == nullptr || !policy->release || files.empty()) {
    return;
  }
  for (const fs::path& file : files) {
    (void)read_release(file);
  }
  (void)releasers_of(*policy->release);  // later, damage would count as the checkpoint's
}

ReleaseUse check_release(const Access& access, const Manifest& manifest,
                         const fs::path& step_folder, const ReleaseFiles& files) {
  const Policy* const policy = access.policy();
  if (policy == nullptr || !policy->release || !needs_release(*policy, manifest.meta.label)) {
    return {};
  }
  const ReleaseRule& rule = *policy->release;
  if (files.empty()) {
    throw PolicyError(fmt::format(
        "{}: the policy asks for the signatures of {} releasers: make a release with `trireme "
        "release request`, let them sign it, and name it with --release",
        printable(step_folder.string()), rule.signers));
  }
  const auto [envelope, release, origin] = release_of(manifest, step_folder, files);
  check_label(release, manifest, step_folder, origin);
  const SignatureFinding found = find_signature(envelope, releasers_of(rule));
  if (found.state == SignatureState::forged) {
    throw PolicyError(fmt::format("{}: a signature that names the key of {} is not of that key",
                                  printable(origin), printable(found.signer())));
  }
  const std::int64_t signers =
      found.state == SignatureState::trusted ? std::ssize(found.key_ids) : 0;
  if (signers < rule.signers) {
    throw PolicyError(
        fmt::format("{}: {} of the releasers {} signed it, and the policy asks for {}",
                    printable(origin), signers, signers == 1 ? "has" : "have", rule.signers));
  }
  return {found.signer(), other_place(release, step_folder)};
}

KeyOptions with_export(KeyOptions options, const Access& access, ReleaseFiles releases,
                       ReleaseUses& uses) {
  check_release_files(access, releases);
  options.admit = [&access, &uses, releases = std::move(releases)](const Manifest& manifest,
                                                                   const fs::path& folder) {
    access.check({Deed::export_plain, Thing::checkpoint, folder, manifest.meta.label});
    uses[folder] = check_release(access, manifest, folder, releases);
  };
  return options;
}

void note_export(AuditTrail& audit, const StepFolder& step, const ReleaseUse& use,
                 const fs::path& out, std::string_view format) {
  audit.note("checkpoint.exported",
             {{"folder", fs::absolute(step.path).lexically_normal().string()},
              {"manifest_sha256", step.manifest_sha256},
              {"label", label_json(step.manifest->meta.label)},
              {"file", fs::absolute(out).lexically_normal().string()},
              {"format", format},
              {"released_by", use.signers}});
  if (!use.other_place.empty()) {
    say(fmt::format("note: the release names {}; {} is a copy of that checkpoint", use.other_place,
                    step.path.string()));
  }
}

}  // namespace trireme
