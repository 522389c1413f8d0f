#include "src/keys/key_uri.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/key_file.h"
#include "src/keys/keyring_key.h"
#include "src/keys/passphrase_key.h"
#include "src/keys/pkcs11_uri.h"
#include "src/keys/token_key.h"

namespace trireme {
namespace {

constexpr std::string_view kPassphraseFile = "passphrase-file";

struct KeyUri {
  std::string scheme;
  std::string rest;
};

// Returns whether the text before a colon can only be meant as a scheme, and is no secret itself.
bool is_like_scheme(std::string_view text) {
  constexpr std::size_t kMostLetters = 16;
  return !text.empty() && text.size() <= kMostLetters &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

// Messages quote only the scheme, because a secret could follow it, or stand in its place, by
// mistake.
KeyUri parse_key_uri(const std::string& uri) {
  const std::size_t colon = uri.find(':');
  const KeyUri parsed{uri.substr(0, colon),
                      colon == std::string::npos ? "" : uri.substr(colon + 1)};
  if (parsed.scheme == kPkcs11Kind && colon != std::string::npos) {
    (void)parse_pkcs11_uri(uri);
    return parsed;
  }
  if (parsed.scheme == kPassphraseKind && colon != std::string::npos) {
    if (!parsed.rest.empty()) {
      throw ConfigError(
          "nothing may follow passphrase: because others can read what is written there; the "
          "passphrase is asked for on the terminal, or name a file: passphrase-file:PATH");
    }
    return parsed;
  }
  const bool is_known = parsed.scheme == kFileKind || parsed.scheme == kPassphraseFile ||
                        parsed.scheme == kKeyringKind;
  if (!is_known || parsed.rest.empty() || parsed.rest.find('\0') != std::string::npos) {
    const std::string named = colon != std::string::npos && is_like_scheme(parsed.scheme)
                                  ? fmt::format("named with '{}'", parsed.scheme)
                                  : "whose name has no scheme";
    throw ConfigError(
        fmt::format("a key {} is not understood: write file:PATH, passphrase-file:PATH, "
                    "passphrase:, keyring:DESCRIPTION or pkcs11:...",
                    named));
  }
  return parsed;
}

}  // namespace

std::string_view secret_in_uri(std::string_view word) {
  for (const std::string_view mark :
       {std::string_view("passphrase:"), std::string_view("pin-value=")}) {
    const std::size_t at = word.find(mark);
    if (at != std::string_view::npos) {
      const std::string_view rest = word.substr(at + mark.size());
      return mark == "pin-value=" ? rest.substr(0, rest.find('&')) : rest;
    }
  }
  return "";
}

void check_key_uri(const std::string& uri) { (void)parse_key_uri(uri); }

std::unique_ptr<WrappingKey> open_key(const std::string& uri) {
  const KeyUri parsed = parse_key_uri(uri);
  if (parsed.scheme == kPassphraseKind) {
    return PassphraseKey::ask();
  }
  if (parsed.scheme == kPassphraseFile) {
    return PassphraseKey::load(parsed.rest);
  }
  if (parsed.scheme == kKeyringKind) {
    return KeyringKey::load(parsed.rest);
  }
  if (parsed.scheme == kPkcs11Kind) {
    return open_token_key(uri);
  }
  return KeyFile::load(parsed.rest);
}

}  // namespace trireme
