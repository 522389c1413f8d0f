#include "src/lineage/certificate_check.h"

#include <fmt/ranges.h>

#include "src/base/file.h"
#include "src/base/keys_name.h"
#include "src/base/units.h"
#include "src/evidence/certificate.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostNamed = 10;

// Returns the files of wrapped keys that were gone when an interrupted erasure was given again.
std::vector<std::string> keys_gone_before(const Erasure& erasure) {
  std::vector<std::string> keys;
  for (const std::string& name : erasure.gone_before) {
    if (fs::path(name).filename() == kKeysFileName) {
      keys.push_back(name);
    }
  }
  return keys;
}

std::string fact_of_keys(const Erasure& erasure) {
  if (!erasure.keys.empty()) {
    return fmt::format("wrapped keys overwritten before all else: {}",
                       fmt::join(erasure.keys, ", "));
  }
  if (!keys_gone_before(erasure).empty()) {
    return "it was encrypted, and its wrapped keys were gone when the erasure was given again";
  }
  return erasure.missing_keys.empty() ? "it had no wrapped keys: it was not encrypted"
                                      : "it was encrypted, and had no wrapped keys any more";
}

std::vector<std::string> facts_of(const Erasure& erasure) {
  std::vector<std::string> facts = {
      fmt::format("{}, {}", counted(std::ssize(erasure.files), "file"),
                  format_bytes(erasure.bytes)),
      fact_of_keys(erasure),
      erasure.overwritten ? "all other files: overwritten, then removed"
                          : "all other files: removed, not overwritten",
      fmt::format("from {} to {} on {}, by the user {}, with {}", erasure.started, erasure.finished,
                  erasure.host, erasure.uid, erasure.program)};
  if (!erasure.missing_keys.empty()) {
    facts.push_back(fmt::format(
        "wrapped keys that were not there any more when this began, so that it overwrote none of "
        "them: {}",
        fmt::join(erasure.missing_keys, ", ")));
  }
  if (!erasure.gone_before.empty()) {
    facts.push_back(
        fmt::format("begun by a command that was interrupted: {} of these files were gone when it "
                    "was given again",
                    erasure.gone_before.size()));
    if (const auto keys = keys_gone_before(erasure); !keys.empty()) {
      facts.push_back(fmt::format(
          "wrapped keys among these, of which is not known whether they were overwritten: {}",
          fmt::join(keys, ", ")));
    }
  }
  if (!erasure.reason.empty()) {
    facts.push_back(fmt::format("reason: {}", erasure.reason));
  }
  return facts;
}

void check_signature(const SignatureFinding& signature, const std::string& file, Lineage& lineage) {
  switch (signature.state) {
    case SignatureState::trusted:
      break;
    case SignatureState::none:
      lineage.faults.push_back({ExitCode::refused, fmt::format("{} is not signed", file)});
      break;
    case SignatureState::revoked:
      lineage.faults.push_back(
          {ExitCode::refused, fmt::format("{} is signed by {}", file, signature.signer())});
      break;
    case SignatureState::untrusted:
      lineage.faults.push_back(
          {ExitCode::refused, fmt::format("{} is signed by {}, which the trust file does not hold",
                                          file, signature.signer())});
      break;
    case SignatureState::forged:
      lineage.faults.push_back(
          {ExitCode::bad_data, fmt::format("{} was changed: the signature is not that of {}", file,
                                           signature.signer())});
      break;
  }
}

// Looks for the erased files at their places, as far as this host sees them.
void look_for(const Erasure& erasure, Lineage& lineage) {
  const fs::path folder = path_of_uri(erasure.uri);
  std::vector<std::string> others;
  std::size_t found = 0;
  for (const Subject& file : erasure.files) {
    const fs::path path = folder / file.name;
    std::error_code unknown;
    if (folder.empty() || !fs::is_regular_file(path, unknown)) {
      continue;
    }
    const FileDigest digest = digest_file(path);
    lineage.bytes += digest.bytes;
    if (digest.sha256 != file.sha256) {
      others.push_back(file.name);
    } else if (++found <= kMostNamed) {
      lineage.faults.push_back(
          {ExitCode::bad_data,
           fmt::format("{} is there, with the contents that were erased", path.string())});
    }
  }
  if (found > kMostNamed) {
    lineage.faults.push_back(
        {ExitCode::bad_data, fmt::format("so are {} more", found - kMostNamed)});
  }
  if (!others.empty()) {
    lineage.notes.push_back(fmt::format(
        "{} holds {} of the same name and other contents, such as {}: it was made later",
        folder.string(), counted(std::ssize(others), "file"), others.front()));
  }
}

}  // namespace

bool looks_like_certificate(const fs::path& file) {
  constexpr std::string_view kBeginning = R"({"payloadType":)";
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) {
    return false;
  }
  std::string found(kBeginning.size(), '\0');
  const std::int64_t bytes = File::open_to_read(file).read_at(0, found.data(), std::ssize(found));
  return bytes == std::ssize(found) && found == kBeginning;
}

Lineage check_certificate(const fs::path& file, const std::vector<TrustedKey>& trusted) {
  const std::string origin = file.string();
  const SignedErasure made =
      parse_certificate(read_file(file, kMostCertificateBytes), origin, trusted);
  Lineage lineage;
  check_signature(made.signature, origin, lineage);
  const bool is_trusted = lineage.faults.empty();
  // Do not open files that only a certificate without a valid signature names.
  if (is_trusted) {
    look_for(made.erasure, lineage);
  }
  const std::string place = path_of_uri(made.erasure.uri);
  lineage.items.push_back({0, "certificate", origin,
                           fmt::format("the {} {} was erased{}", made.erasure.kind,
                                       place.empty() ? made.erasure.uri : place,
                                       is_trusted ? ", signed by " + made.signature.signer() : ""),
                           facts_of(made.erasure), lineage.code()});
  return lineage;
}

}  // namespace trireme
