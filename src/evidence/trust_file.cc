#include "src/evidence/trust_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/calendar.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/evidence/pem.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostTrustFileBytes = 1 << 20;
constexpr std::string_view kRevoked = "revoked:";
constexpr std::string_view kAlways = "always";

// Tells a file that was named by mistake from a trust file that is damaged.
void check_is_trust_file(std::string_view text, const std::string& origin) {
  if (text.find("PRIVATE KEY-----") != std::string_view::npos) {
    throw ConfigError(fmt::format(
        "{} holds a private key, which belongs in no trust file: name the file of the public key, "
        "and consider the private one disclosed if others could read this file",
        origin));
  }
  if (text.find("-----BEGIN ") == std::string_view::npos) {
    throw ConfigError(fmt::format(
        "{} is no trust file, since it holds no key in PEM: name a file of public keys, "
        "such as FILE.pub of `trireme audit keygen --out FILE`",
        origin));
  }
}

// Reads what follows "revoked:".
Revocation parse_revocation(std::string_view text, const PemReader& reader) {
  const auto after_blanks = [](std::string_view rest) {
    return rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size()));
  };
  text = after_blanks(text);
  const std::string_view when = text.substr(0, text.find_first_of(" \t"));
  const std::string reason = printable(after_blanks(text.substr(when.size())));
  if (when == kAlways) {
    return {"", reason};
  }
  if (!is_utc_time(when)) {
    reader.refuse(
        "expected 'revoked: always REASON', or a time in UTC as in 'revoked: 2026-03-01T12:00:00Z "
        "REASON', of a day that the calendar has");
  }
  return {std::string(when), reason};
}

PublicKey parse_key(PemReader& reader) {
  const std::optional<PublicKey> key = PublicKey::of_der(reader.contents(PublicKey::kPemLabel));
  if (!key) {
    reader.refuse("neither an Ed25519 key nor a point of the curve P-256");
  }
  if (key->is_weak()) {
    reader.refuse(
        "anyone can make signatures that this key accepts: its point has a small order, or its "
        "encoding is not canonical; remove it, and ask where it came from");
  }
  return *key;
}

// Returns whether the first of two revocations leaves more signatures without trust.
bool is_stricter(const Revocation& a, const Revocation& b) {
  return !b.since.empty() && (a.since.empty() || a.since < b.since);
}

// A key may be listed several times, as where trust files were joined. What revokes it in one place
// revokes it in all of them; if several lines do, the one that takes back most counts.
void revoke_everywhere(std::vector<TrustedKey>& keys) {
  std::map<std::string, Revocation> revoked;
  for (const TrustedKey& key : keys) {
    if (key.revoked) {
      const auto [known, is_new] = revoked.try_emplace(key.key.id(), *key.revoked);
      if (!is_new && is_stricter(*key.revoked, known->second)) {
        known->second = *key.revoked;
      }
    }
  }
  for (TrustedKey& key : keys) {
    if (const auto found = revoked.find(key.key.id()); found != revoked.end()) {
      key.revoked = found->second;
    }
  }
}

}  // namespace

bool TrustedKey::counts_at(std::string_view time) const {
  if (!revoked) {
    return true;
  }
  // Times of this form sort like their texts. A signature that states no time, or one of another
  // form, may be of any time.
  return !revoked->since.empty() && is_utc_time(time) && time < revoked->since;
}

std::vector<TrustedKey> parse_trusted_keys(std::string_view text, const std::string& origin) {
  check_is_trust_file(text, origin);
  std::vector<TrustedKey> keys;
  PemReader reader(text, origin);
  std::string name;
  std::optional<Revocation> revoked;
  for (std::optional<std::string> line = reader.line(); line; line = reader.line()) {
    if (line->empty() || line->starts_with('#')) {
      const std::size_t word = line->find_first_not_of("# \t");
      name = word == std::string::npos ? "" : printable(line->substr(word));
    } else if (line->starts_with(kRevoked)) {
      if (revoked) {
        reader.refuse("a key is revoked twice: keep one of the lines");
      }
      revoked = parse_revocation(std::string_view(*line).substr(kRevoked.size()), reader);
    } else if (line == begin_line(PublicKey::kPemLabel)) {
      const PublicKey key = parse_key(reader);
      keys.push_back({key, std::exchange(name, ""), std::exchange(revoked, std::nullopt)});
    } else {
      reader.refuse(
          "expected '-----BEGIN PUBLIC KEY-----', 'revoked: ', or a comment that begins with '#'");
    }
  }
  if (keys.empty()) {
    throw DataError(fmt::format("{}: no public key is in this file", origin));
  }
  if (revoked) {
    reader.refuse("no key follows the line that revokes one");
  }
  revoke_everywhere(keys);
  return keys;
}

std::vector<TrustedKey> load_trusted_keys(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) {
    throw ConfigError(
        fmt::format("{} is no trust file, since it is no regular file: name a file of "
                    "public keys",
                    path.string()));
  }
  return parse_trusted_keys(read_file(path, kMostTrustFileBytes), path.string());
}

std::string name_of_key(const TrustedKey& key) {
  const std::string id = short_id(key.key.id());
  return key.name.empty() ? "key " + id : fmt::format("{} (key {})", key.name, id);
}

std::string revocation_text(const TrustedKey& key) {
  if (!key.revoked) {
    return "";
  }
  return fmt::format(", which was revoked{}{}",
                     key.revoked->since.empty() ? "" : " on " + key.revoked->since,
                     key.revoked->reason.empty() ? "" : fmt::format(" ({})", key.revoked->reason));
}

std::string short_id(const std::string& key_id) { return printable(key_id.substr(0, 16)); }

}  // namespace trireme
