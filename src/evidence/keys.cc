#include "src/evidence/keys.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "src/base/base64.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/private_file.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

constexpr std::size_t kSignatureBytes = 64;
constexpr std::int64_t kMostKeyFileBytes = 1 << 20;
constexpr std::string_view kPrivateLabel = "PRIVATE KEY";
constexpr std::string_view kPublicLabel = "PUBLIC KEY";
// The bytes of DER before those of the key: RFC 8410, sections 4 and 7, for id-Ed25519.
constexpr std::string_view kPublicPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kPrivatePrefix(
    "\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16);

struct KeyTraits {
  using Handle = EVP_PKEY*;
  static Handle none() { return nullptr; }
  static void close(Handle key) { EVP_PKEY_free(key); }
};
struct ContextTraits {
  using Handle = EVP_MD_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_MD_CTX_free(context); }
};
using EvpKey = UniqueHandle<KeyTraits>;
using EvpContext = UniqueHandle<ContextTraits>;

// The y coordinates of the eight points whose order divides 8, least significant byte first; x is 0
// for the first two, and each other y has two x, which differ in the sign bit of the encoding.
// 2^255 - 19 is the field's prime p.
constexpr std::array<std::string_view, 5> kSmallOrder = {
    "0100000000000000000000000000000000000000000000000000000000000000",   // 1
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",   // p - 1
    "0000000000000000000000000000000000000000000000000000000000000000",   // 0: order 4
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",   // order 8
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"};  // order 8

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

EvpKey private_key(const SigningKey::Seed& seed) {
  EvpKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  check(static_cast<bool>(key), "OpenSSL accepts the seed of an Ed25519 key");
  return key;
}

PublicKey public_key_of(const SigningKey::Seed& seed) {
  PublicKey::Bytes bytes{};
  std::size_t length = bytes.size();
  check(EVP_PKEY_get_raw_public_key(private_key(seed).get(), bytes.data(), &length) == 1 &&
            length == bytes.size(),
        "OpenSSL derives an Ed25519 public key");
  return PublicKey(bytes);
}

std::string der(std::string_view prefix, const unsigned char* key, std::size_t bytes) {
  return std::string(prefix) + std::string(reinterpret_cast<const char*>(key), bytes);
}

// 44 and 48 bytes take 60 and 64 digits, which is one line of PEM.
std::string pem(std::string_view label, const std::string& contents) {
  return fmt::format("-----BEGIN {}-----\n{}\n-----END {}-----\n", label, to_base64(contents),
                     label);
}

// Reads text with PEM line by line.
class PemReader {
 public:
  PemReader(std::string_view text, const std::string& origin)
      : lines_(std::string(text)), origin_(origin) {}

  // Returns the next line without blanks at its end, or nothing at the end of the text.
  std::optional<std::string> line() {
    std::string text;
    if (!std::getline(lines_, text)) {
      return std::nullopt;
    }
    ++number_;
    text.erase(text.find_last_not_of(" \t\r") + 1);
    return text;
  }

  // Returns the `bytes` bytes after `prefix` in the block whose first line was just read.
  std::string contents(std::string_view label, std::string_view prefix, std::size_t bytes) {
    const int begin = number_;
    std::string digits;
    for (std::optional<std::string> next = line();; next = line()) {
      if (!next || digits.size() > 100000) {
        refuse(fmt::format("the block that begins at line {} has no end", begin));
      }
      if (*next == fmt::format("-----END {}-----", label)) {
        break;
      }
      digits += *next;
    }
    std::string decoded;
    try {
      decoded = from_base64(digits);
    } catch (const DataError& error) {
      refuse(error.what());
    }
    if (decoded.size() != prefix.size() + bytes || !decoded.starts_with(prefix)) {
      refuse("not an Ed25519 key; make one with trireme audit keygen");
    }
    return decoded.substr(prefix.size());
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", origin_, number_, what));
  }

 private:
  std::istringstream lines_;
  const std::string& origin_;
  int number_ = 0;
};

std::string begin_line(std::string_view label) { return fmt::format("-----BEGIN {}-----", label); }

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

}  // namespace

PublicKey::PublicKey(const Bytes& bytes)
    : bytes_(bytes), id_(sha256_hex(der(kPublicPrefix, bytes.data(), bytes.size()))) {}

bool PublicKey::is_weak(const Bytes& bytes) {
  Bytes y = bytes;
  y.back() &= 0x7f;
  const bool is_at_least_p =
      y.back() == 0x7f && y.front() >= 0xed &&
      std::all_of(y.begin() + 1, y.end() - 1, [](unsigned char byte) { return byte == 0xff; });
  std::string digits;
  for (const unsigned char byte : y) {
    digits += fmt::format("{:02x}", byte);
  }
  return is_at_least_p ||
         std::find(kSmallOrder.begin(), kSmallOrder.end(), digits) != kSmallOrder.end();
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  const EvpKey key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_.data(), bytes_.size()));
  const EvpContext context(EVP_MD_CTX_new());
  return key && context && signature.size() == kSignatureBytes &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                          message.size()) == 1;
}

std::string PublicKey::to_pem() const {
  return pem(kPublicLabel, der(kPublicPrefix, bytes_.data(), bytes_.size()));
}

SigningKey::SigningKey(const Seed& seed) : seed_(seed), public_key_(public_key_of(seed)) {}

SigningKey::SigningKey(SigningKey&& other) noexcept
    : seed_(other.seed_), public_key_(other.public_key_) {
  OPENSSL_cleanse(other.seed_.data(), other.seed_.size());
}

SigningKey& SigningKey::operator=(SigningKey&& other) noexcept {
  if (this != &other) {
    seed_ = other.seed_;
    public_key_ = other.public_key_;
    OPENSSL_cleanse(other.seed_.data(), other.seed_.size());
  }
  return *this;
}

SigningKey::~SigningKey() { OPENSSL_cleanse(seed_.data(), seed_.size()); }

SigningKey SigningKey::generate() {
  Seed seed{};
  check(RAND_priv_bytes(seed.data(), static_cast<int>(seed.size())) == 1,
        "OpenSSL has a source of random bytes");
  SigningKey key(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  return key;
}

SigningKey SigningKey::load(const std::filesystem::path& path) {
  const PrivateFile file(path, kMostKeyFileBytes);
  const std::string origin = path.string();
  PemReader reader(file.text(), origin);
  std::optional<std::string> line = reader.line();
  while (line && (line->empty() || line->starts_with('#'))) {
    line = reader.line();
  }
  if (line == begin_line(kPublicLabel)) {
    reader.refuse("this is a public key: name the private one, which signs");
  }
  file.check_owner_only("a private key");
  if (line == begin_line("ENCRYPTED PRIVATE KEY")) {
    reader.refuse("the key is encrypted with a passphrase, which this program does not read");
  }
  if (line != begin_line(kPrivateLabel)) {
    reader.refuse("expected a private key in PEM; make one with trireme audit keygen");
  }
  std::string raw = reader.contents(kPrivateLabel, kPrivatePrefix, Seed{}.size());
  Seed seed{};
  std::copy(raw.begin(), raw.end(), seed.begin());
  SigningKey key(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  OPENSSL_cleanse(raw.data(), raw.size());
  return key;
}

void SigningKey::save(const std::filesystem::path& path) const {
  std::string contents = der(kPrivatePrefix, seed_.data(), seed_.size());
  std::string text = pem(kPrivateLabel, contents);
  try {
    write_private_file(path, text);
  } catch (const Error&) {
    OPENSSL_cleanse(text.data(), text.size());
    OPENSSL_cleanse(contents.data(), contents.size());
    throw;
  }
  OPENSSL_cleanse(text.data(), text.size());
  OPENSSL_cleanse(contents.data(), contents.size());
}

std::string SigningKey::sign(std::string_view message) const {
  const EvpKey key = private_key(seed_);
  const EvpContext context(EVP_MD_CTX_new());
  std::string signature(kSignatureBytes, '\0');
  std::size_t length = signature.size();
  check(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
            EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                           &length, bytes_of(message), message.size()) == 1 &&
            length == kSignatureBytes,
        "OpenSSL signs with an Ed25519 key");
  return signature;
}

std::vector<TrustedKey> parse_trusted_keys(std::string_view text, const std::string& origin) {
  check_is_trust_file(text, origin);
  std::vector<TrustedKey> keys;
  PemReader reader(text, origin);
  std::string name;
  for (std::optional<std::string> line = reader.line(); line; line = reader.line()) {
    if (line->empty() || line->starts_with('#')) {
      const std::size_t word = line->find_first_not_of("# \t");
      name = word == std::string::npos ? "" : printable(line->substr(word));
      continue;
    }
    if (line != begin_line(kPublicLabel)) {
      reader.refuse("expected '-----BEGIN PUBLIC KEY-----', or a comment that begins with '#'");
    }
    const std::string raw = reader.contents(kPublicLabel, kPublicPrefix, PublicKey::kBytes);
    PublicKey::Bytes bytes{};
    std::copy(raw.begin(), raw.end(), bytes.begin());
    if (PublicKey::is_weak(bytes)) {
      reader.refuse(
          "anyone can make signatures that this key accepts: its point has a small order, or its "
          "encoding is not canonical; remove it, and ask where it came from");
    }
    keys.push_back({PublicKey(bytes), std::exchange(name, "")});
  }
  if (keys.empty()) {
    throw DataError(fmt::format("{}: no public key is in this file", origin));
  }
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
  return parse_trusted_keys(read_file(path, kMostKeyFileBytes), path.string());
}

std::string name_of_key(const TrustedKey& key) {
  const std::string id = short_id(key.key.id());
  return key.name.empty() ? "key " + id : fmt::format("{} (key {})", key.name, id);
}

std::string short_id(const std::string& key_id) { return printable(key_id.substr(0, 16)); }

}  // namespace trireme
