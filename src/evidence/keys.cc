#include "src/evidence/keys.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/private_file.h"
#include "src/base/unique_handle.h"
#include "src/evidence/ecdsa_key.h"
#include "src/evidence/pem.h"
#include "src/keys/token_signer.h"

namespace trireme {
namespace {

constexpr std::size_t kSignatureBytes = 64;
constexpr std::int64_t kMostKeyFileBytes = 1 << 20;
constexpr std::string_view kPrivateLabel = "PRIVATE KEY";
constexpr std::string_view kTokenScheme = "pkcs11:";
// The bytes of DER before those of the key: RFC 8410, section 7, for id-Ed25519.
constexpr std::string_view kPrivatePrefix(
    "\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16);
// A token signs this at the start. It is neither an envelope nor a list, which are what counts.
constexpr std::string_view kProof = "trireme: proof that a public key belongs to its private key";

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

// Returns what a token's key has as its public half.
PublicKey public_key_of(const TokenSigner& token) {
  const std::optional<PublicKey> key = PublicKey::of_point(token.point());
  if (!key || !key->verifies(kProof, ecdsa_signature(token.sign(kProof)))) {
    throw PolicyError(fmt::format(
        "{}: the public key of that name in the token does not belong to the private one: remove "
        "or rename one of them",
        token.title()));
  }
  return *key;
}

// Reads a private key in DER into `secret`, and returns the public key that belongs to it. Returns
// nothing if the contents have another form, or if an ECDSA key holds a public half of another key.
std::optional<PublicKey> parse_secret(std::string_view der, SigningKey::Seed& secret) {
  if (parse_pkcs8(der, secret)) {
    std::optional<PublicKey> key = public_key_of_ecdsa(secret);
    return key && ends_with_public_key(der, *key) ? key : std::nullopt;
  }
  if (der.size() != kPrivatePrefix.size() + secret.size() || !der.starts_with(kPrivatePrefix)) {
    return std::nullopt;
  }
  std::copy_n(der.begin() + static_cast<std::ptrdiff_t>(kPrivatePrefix.size()), secret.size(),
              secret.begin());
  return public_key_of(secret);
}

}  // namespace

bool names_token(const std::filesystem::path& key) {
  return key.native().starts_with(kTokenScheme);
}

SigningKey::SigningKey(const Seed& secret, PublicKey public_key)
    : secret_(secret), public_key_(std::move(public_key)) {}

SigningKey::SigningKey(const Seed& seed) : SigningKey(seed, public_key_of(seed)) {}

SigningKey::SigningKey(std::unique_ptr<TokenSigner> token)
    : token_(std::move(token)), public_key_(public_key_of(*token_)) {}

SigningKey::SigningKey(SigningKey&& other) noexcept
    : secret_(other.secret_), token_(std::move(other.token_)), public_key_(other.public_key_) {
  OPENSSL_cleanse(other.secret_.data(), other.secret_.size());
}

SigningKey& SigningKey::operator=(SigningKey&& other) noexcept {
  if (this != &other) {
    secret_ = other.secret_;
    token_ = std::move(other.token_);
    public_key_ = other.public_key_;
    OPENSSL_cleanse(other.secret_.data(), other.secret_.size());
  }
  return *this;
}

SigningKey::~SigningKey() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

SigningKey SigningKey::generate(PublicKey::Kind kind) {
  Seed secret{};
  if (kind == PublicKey::Kind::ecdsa_p256) {
    secret = generate_ecdsa_secret();
    const std::optional<PublicKey> public_key = public_key_of_ecdsa(secret);
    check(public_key.has_value(), "a new key on P-256 has a public half");
    SigningKey key(secret, *public_key);
    OPENSSL_cleanse(secret.data(), secret.size());
    return key;
  }
  check(RAND_priv_bytes(secret.data(), static_cast<int>(secret.size())) == 1,
        "OpenSSL has a source of random bytes");
  SigningKey key(secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return key;
}

SigningKey SigningKey::load(const std::filesystem::path& path) {
  if (names_token(path)) {
    return SigningKey(open_token_signer(path.string()));
  }
  const PrivateFile file(path, kMostKeyFileBytes, "a private key");
  const std::string origin = path.string();
  PemReader reader(file.text(), origin);
  std::optional<std::string> line = reader.line();
  while (line && (line->empty() || line->starts_with('#'))) {
    line = reader.line();
  }
  if (line == begin_line(PublicKey::kPemLabel)) {
    reader.refuse("this is a public key: name the private one, which signs");
  }
  file.check_owner_only();
  if (line == begin_line("ENCRYPTED PRIVATE KEY")) {
    reader.refuse("the key is encrypted with a passphrase, which this program does not read");
  }
  if (line == begin_line("EC PRIVATE KEY")) {
    reader.refuse(
        "the key has the old form of openssl: `openssl pkcs8 -topk8 -nocrypt` changes it");
  }
  if (line != begin_line(kPrivateLabel)) {
    reader.refuse("expected a private key in PEM; make one with trireme audit keygen");
  }
  std::string contents = reader.contents(kPrivateLabel);
  Seed secret{};
  const std::optional<PublicKey> public_key = parse_secret(contents, secret);
  OPENSSL_cleanse(contents.data(), contents.size());
  if (!public_key) {
    OPENSSL_cleanse(secret.data(), secret.size());
    reader.refuse(
        "neither an Ed25519 key nor one of ECDSA on P-256; make one with trireme audit keygen");
  }
  SigningKey key(secret, *public_key);
  OPENSSL_cleanse(secret.data(), secret.size());
  return key;
}

void SigningKey::save(const std::filesystem::path& path) const {
  check(token_ == nullptr, "a token keeps its private key");
  std::string contents;
  if (public_key_.kind() == PublicKey::Kind::ecdsa_p256) {
    contents = to_pkcs8(secret_, public_key_);
  } else {
    contents = kPrivatePrefix;
    contents.append(reinterpret_cast<const char*>(secret_.data()), secret_.size());
  }
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
  if (token_ != nullptr) {
    return ecdsa_signature(token_->sign(message));
  }
  if (public_key_.kind() == PublicKey::Kind::ecdsa_p256) {
    return sign_with_ecdsa(secret_, message);
  }
  const EvpKey key = private_key(secret_);
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

}  // namespace trireme
