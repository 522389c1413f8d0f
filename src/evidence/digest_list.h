// A digest list is the file that `sha256sum FILE...` prints, such as the SHA256SUMS of a release:
//
//   <64 hexadecimal digits>  <name of a file beside the list>
//
// Beside LIST lies LIST.sig, the bytes of a signature over those of the list (public_key.h), so
// that other tools can check both (`openssl pkeyutl -verify -rawin`, `sha256sum --check`). What
// else a key of evidence signs begins with "DSSEv1" (envelope.h) and is therefore no list. Since a
// list states no time, a signature of a revoked key never counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/keys.h"

namespace trireme {

inline constexpr const char* kSignatureSuffix = ".sig";
// No longer list is read.
inline constexpr std::int64_t kMostListBytes = std::int64_t{1} << 20;

struct ListedFile {
  std::string sha256;  // 64 lowercase hexadecimal digits
  std::string name;    // without a folder
};

// Throws DataError that names `origin` and the line if the text has another form: a name with a
// folder, with a character that does not print, or that stands twice; another line end; no line.
std::vector<ListedFile> parse_digest_list(std::string_view text, const std::string& origin);

// Returns whether the file is signed as a list, or begins as one.
bool may_be_digest_list(const std::filesystem::path& path);

// Reads the list at the path and writes its signature beside it, unless this key has made the one
// that is there. Throws PolicyError if that is another one: somebody else's, or of an older list.
void sign_digest_list(const std::filesystem::path& path, const SigningKey& key);

struct SignedList {
  std::vector<ListedFile> files;
  // The trusted keys that made the signature; none if no trusted key did.
  std::vector<TrustedKey> signers;
};

// Throws NotFound if the list does not exist, PolicyError if it has no signature, and DataError if
// its signature is longer or shorter than any.
SignedList read_signed_list(const std::filesystem::path& path,
                            const std::vector<TrustedKey>& trusted);

}  // namespace trireme
