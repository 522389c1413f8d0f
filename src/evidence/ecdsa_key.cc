#include "src/evidence/ecdsa_key.h"

#include <algorithm>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "src/base/check.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

// The bytes before the private key: version, id-ecPublicKey on secp256r1, version of ECPrivateKey.
constexpr std::string_view kPkcs8Prefix(
    "\x30\x81\x87\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce"
    "\x3d\x03\x01\x07\x04\x6d\x30\x6b\x02\x01\x01\x04\x20",
    36);
constexpr std::string_view kPkcs8PointPrefix("\xa1\x44\x03\x42\x00", 5);
// The same without a public key, from which OpenSSL computes it.
constexpr std::string_view kShortPrefix(
    "\x30\x41\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce"
    "\x3d\x03\x01\x07\x04\x27\x30\x25\x02\x01\x01\x04\x20",
    35);

struct EcdsaKeyTraits {
  using Handle = EVP_PKEY*;
  static Handle none() { return nullptr; }
  static void close(Handle key) { EVP_PKEY_free(key); }
};
struct EcdsaSignTraits {
  using Handle = EVP_MD_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_MD_CTX_free(context); }
};
using EcdsaKey = UniqueHandle<EcdsaKeyTraits>;

std::string_view view_of(const EcdsaSecret& secret) {
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

EcdsaKey key_of_secret(const EcdsaSecret& secret) {
  std::string der(kShortPrefix);
  der += view_of(secret);
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  EcdsaKey key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(der.size())));
  OPENSSL_cleanse(der.data(), der.size());
  return key;
}

std::string point_of(const PublicKey& key) {
  const std::string der = key.to_der();
  return der.substr(der.size() - PublicKey::kPointBytes);
}

}  // namespace

EcdsaSecret generate_ecdsa_secret() {
  const EcdsaKey key(EVP_EC_gen("P-256"));
  BIGNUM* number = nullptr;
  EcdsaSecret secret{};
  const bool is_made = key &&
                       EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1 &&
                       BN_bn2binpad(number, secret.data(), static_cast<int>(secret.size())) ==
                           static_cast<int>(secret.size());
  BN_clear_free(number);
  check(is_made, "OpenSSL makes a key on P-256");
  return secret;
}

std::optional<PublicKey> public_key_of_ecdsa(const EcdsaSecret& secret) {
  const EcdsaKey key = key_of_secret(secret);
  unsigned char* der = nullptr;
  const int bytes = key ? i2d_PUBKEY(key.get(), &der) : 0;
  if (bytes <= 0) {
    return std::nullopt;
  }
  const std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(bytes));
  OPENSSL_free(der);
  return PublicKey::of_der(text);
}

std::string to_pkcs8(const EcdsaSecret& secret, const PublicKey& public_key) {
  std::string der;
  der.reserve(kPkcs8Prefix.size() + secret.size() + kPkcs8PointPrefix.size() +
              PublicKey::kPointBytes);  // so that no copy of the secret is left behind
  der += kPkcs8Prefix;
  der += view_of(secret);
  der += kPkcs8PointPrefix;
  der += point_of(public_key);
  return der;
}

bool parse_pkcs8(std::string_view der, EcdsaSecret& secret) {
  const std::size_t point = kPkcs8Prefix.size() + secret.size();
  if (der.size() != point + kPkcs8PointPrefix.size() + PublicKey::kPointBytes ||
      !der.starts_with(kPkcs8Prefix) ||
      der.substr(point, kPkcs8PointPrefix.size()) != kPkcs8PointPrefix) {
    return false;
  }
  std::copy_n(der.begin() + static_cast<std::ptrdiff_t>(kPkcs8Prefix.size()), secret.size(),
              secret.begin());
  return true;
}

bool ends_with_public_key(std::string_view der, const PublicKey& public_key) {
  return der.ends_with(point_of(public_key));
}

std::string sign_with_ecdsa(const EcdsaSecret& secret, std::string_view message) {
  const EcdsaKey key = key_of_secret(secret);
  const UniqueHandle<EcdsaSignTraits> context(EVP_MD_CTX_new());
  std::string signature(kMostSignatureBytes, '\0');
  std::size_t length = signature.size();
  check(key && context &&
            EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
            EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                           &length, reinterpret_cast<const unsigned char*>(message.data()),
                           message.size()) == 1,
        "OpenSSL signs with a key on P-256");
  signature.resize(length);
  return signature;
}

}  // namespace trireme
