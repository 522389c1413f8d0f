#include "src/evidence/digest_list.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kListedDigits = 64;
constexpr std::string_view kBetween = "  ";

bool is_digest(std::string_view text) {
  return text.size() == kListedDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns whether the name is that of a file in the folder of the list, and shows what it is.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of("/\\") == std::string_view::npos && printable(name) == name;
}

std::filesystem::path signature_of(const std::filesystem::path& path) {
  return path.string() + kSignatureSuffix;
}

std::string read_signature(const std::filesystem::path& path) {
  try {
    return read_file(path, kMostSignatureBytes + 1);
  } catch (const NotFound&) {
    throw PolicyError(fmt::format(
        "{} does not exist, so nobody has signed the list: ask its author for it", path.string()));
  }
}

}  // namespace

std::vector<ListedFile> parse_digest_list(std::string_view text, const std::string& origin) {
  std::vector<ListedFile> files;
  std::set<std::string_view> names;
  while (!text.empty()) {
    const auto refuse = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", origin, files.size() + 1, what));
    };
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      refuse("the last line has no end, so the list may have been cut");
    }
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string_view digest = line.substr(0, kListedDigits);
    const std::string_view rest = line.substr(digest.size());
    if (!is_digest(digest) || !rest.starts_with(kBetween)) {
      refuse("expected 64 lowercase hexadecimal digits, two blanks and a name, as of sha256sum");
    }
    const std::string_view name = rest.substr(kBetween.size());
    if (!is_plain_name(name)) {
      refuse(fmt::format("'{}' is not the plain name of a file beside the list", printable(name)));
    }
    if (!names.insert(name).second) {
      refuse(fmt::format("'{}' stands twice in the list", name));
    }
    files.push_back({std::string(digest), std::string(name)});
  }
  if (files.empty()) {
    throw DataError(fmt::format("{}: the list is empty", origin));
  }
  return files;
}

bool may_be_digest_list(const std::filesystem::path& path) {
  if (std::filesystem::exists(signature_of(path))) {
    return true;
  }
  std::string start(static_cast<std::size_t>(kListedDigits), '\0');
  const std::int64_t bytes = File::open_to_read(path).read_at(0, start.data(), std::ssize(start));
  return bytes == std::ssize(start) && is_digest(start);
}

void sign_digest_list(const std::filesystem::path& path, const SigningKey& key) {
  const std::string text = read_file(path, kMostListBytes);
  parse_digest_list(text, path.string());  // signs nothing but a list of digests
  const std::filesystem::path signature = signature_of(path);
  if (std::filesystem::exists(std::filesystem::symlink_status(signature))) {
    if (!key.public_key().verifies(text, read_signature(signature))) {
      throw PolicyError(fmt::format(
          "{} exists and is not this key's signature of the list: it is not replaced; move it "
          "elsewhere if the list shall be signed anew",
          signature.string()));
    }
    return;
  }
  write_named_file(signature, key.sign(text));
}

SignedList read_signed_list(const std::filesystem::path& path,
                            const std::vector<TrustedKey>& trusted) {
  const std::string text = read_file(path, kMostListBytes);
  const std::string signature = read_signature(signature_of(path));
  if (!has_signature_form(signature)) {
    throw DataError(fmt::format("{} has not the bytes of a signature of Ed25519 or ECDSA",
                                signature_of(path).string()));
  }
  SignedList list{parse_digest_list(text, path.string()), {}};
  std::copy_if(trusted.begin(), trusted.end(), std::back_inserter(list.signers),
               [&](const TrustedKey& each) {
                 return each.counts_at("") && each.key.verifies(text, signature);
               });
  return list;
}

}  // namespace trireme
