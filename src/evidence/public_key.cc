#include "src/evidence/public_key.h"

#include <algorithm>

#include <fmt/core.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/unique_handle.h"
#include "src/evidence/pem.h"

namespace trireme {
namespace {

constexpr std::size_t kEdSignatureBytes = 64;
constexpr std::size_t kScalarBytes = 32;  // of r, of s, and of each coordinate
constexpr char kUncompressed = 4;
// The bytes of DER before those of the key: RFC 8410, section 4, for id-Ed25519, and RFC 5480,
// section 2, for id-ecPublicKey on secp256r1.
constexpr std::string_view kEdPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kPointPrefix(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
    "\x03"
    "\x42\x00",
    26);

struct PublicKeyTraits {
  using Handle = EVP_PKEY*;
  static Handle none() { return nullptr; }
  static void close(Handle key) { EVP_PKEY_free(key); }
};
struct KeyContextTraits {
  using Handle = EVP_PKEY_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_PKEY_CTX_free(context); }
};
struct VerifyContextTraits {
  using Handle = EVP_MD_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_MD_CTX_free(context); }
};
struct EcdsaTraits {
  using Handle = ECDSA_SIG*;
  static Handle none() { return nullptr; }
  static void close(Handle signature) { ECDSA_SIG_free(signature); }
};
using EvpPublicKey = UniqueHandle<PublicKeyTraits>;

// The y coordinates of the eight points whose order divides 8, least significant byte first; x is 0
// for the first two, and each other y has two x, which differ in the sign bit of the encoding.
// 2^255 - 19 is the field's prime p.
constexpr std::array<std::string_view, 5> kSmallOrder = {
    "0100000000000000000000000000000000000000000000000000000000000000",   // 1
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",   // p - 1
    "0000000000000000000000000000000000000000000000000000000000000000",   // 0: order 4
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",   // order 8
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"};  // order 8

const unsigned char* raw_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns an empty handle if OpenSSL does not accept the key, such as a point beside the curve.
EvpPublicKey evp_key(PublicKey::Kind kind, std::string_view raw) {
  if (kind == PublicKey::Kind::ed25519) {
    return EvpPublicKey(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw_bytes(raw), raw.size()));
  }
  std::string curve = "prime256v1";
  std::string point(raw);  // the parameters take pointers to what they do not change
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()),
      OSSL_PARAM_construct_end()};
  const UniqueHandle<KeyContextTraits> context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (!context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    return {};
  }
  return EvpPublicKey(key);
}

}  // namespace

PublicKey::PublicKey(Kind kind, std::string_view raw)
    : kind_(kind), raw_(raw), id_(sha256_hex(to_der())) {}

PublicKey::PublicKey(const Bytes& bytes)
    : PublicKey(Kind::ed25519, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}) {}

std::optional<PublicKey> PublicKey::of_point(std::string_view point) {
  if (point.size() != kPointBytes || point.front() != kUncompressed ||
      !evp_key(Kind::ecdsa_p256, point)) {
    return std::nullopt;
  }
  return PublicKey(Kind::ecdsa_p256, point);
}

std::optional<PublicKey> PublicKey::of_der(std::string_view der) {
  if (der.starts_with(kPointPrefix)) {
    return of_point(der.substr(kPointPrefix.size()));
  }
  if (der.starts_with(kEdPrefix) && der.size() == kEdPrefix.size() + Bytes{}.size()) {
    return PublicKey(Kind::ed25519, der.substr(kEdPrefix.size()));
  }
  return std::nullopt;
}

std::string PublicKey::to_der() const {
  return std::string(kind_ == Kind::ed25519 ? kEdPrefix : kPointPrefix) + raw_;
}

bool PublicKey::is_weak() const {
  if (kind_ != Kind::ed25519) {
    return false;
  }
  std::string digits;
  for (std::size_t i = 0; i < raw_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(raw_[i]);
    digits += fmt::format("{:02x}", i + 1 < raw_.size() ? byte : byte & 0x7fU);
  }
  const bool is_at_least_p =
      digits.substr(2) == std::string(60, 'f') + "7f" && digits.substr(0, 2) >= "ed";
  return is_at_least_p ||
         std::find(kSmallOrder.begin(), kSmallOrder.end(), digits) != kSmallOrder.end();
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  const bool is_ed = kind_ == Kind::ed25519;
  if (is_ed ? signature.size() != kEdSignatureBytes : signature.size() > kMostSignatureBytes) {
    return false;
  }
  const EvpPublicKey key = evp_key(kind_, raw_);
  const UniqueHandle<VerifyContextTraits> context(EVP_MD_CTX_new());
  return key && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, is_ed ? nullptr : EVP_sha256(), nullptr,
                              key.get()) == 1 &&
         EVP_DigestVerify(context.get(), raw_bytes(signature), signature.size(), raw_bytes(message),
                          message.size()) == 1;
}

std::string PublicKey::to_pem() const { return pem(kPemLabel, to_der()); }

bool has_signature_form(std::string_view signature) {
  constexpr char kSequence = 0x30;
  const bool is_der = signature.size() > 2 && signature.size() <= kMostSignatureBytes &&
                      signature[0] == kSequence &&
                      static_cast<unsigned char>(signature[1]) == signature.size() - 2;
  return is_der || signature.size() == kEdSignatureBytes;
}

std::string ecdsa_signature(std::string_view r_and_s) {
  check(r_and_s.size() == 2 * kScalarBytes, "r and s of P-256 have 32 bytes each");
  const UniqueHandle<EcdsaTraits> signature(ECDSA_SIG_new());
  BIGNUM* const r = BN_bin2bn(raw_bytes(r_and_s), kScalarBytes, nullptr);
  BIGNUM* const s = BN_bin2bn(raw_bytes(r_and_s.substr(kScalarBytes)), kScalarBytes, nullptr);
  check(signature && r != nullptr && s != nullptr &&
            ECDSA_SIG_set0(signature.get(), r, s) == 1,  // which owns r and s from now on
        "OpenSSL takes a signature");
  unsigned char* der = nullptr;
  const int bytes = i2d_ECDSA_SIG(signature.get(), &der);
  check(bytes > 0, "OpenSSL encodes a signature");
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(bytes));
  OPENSSL_free(der);
  return text;
}

}  // namespace trireme
