#include "src/keys/data_key.h"

#include <utility>

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>

#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/keys/derive.h"

namespace trireme {
namespace {

constexpr std::size_t kIdBytes = 16;

std::string id_of(const Secret& key) {
  const Secret id = hkdf_sha256(key.view(), "trireme id", kIdBytes);
  std::string digits;
  for (std::size_t i = 0; i < id.bytes(); ++i) {
    digits += fmt::format("{:02x}", id.data()[i]);
  }
  return digits;
}

}  // namespace

Secret hkdf_sha256(std::string_view key, std::string_view info, std::size_t bytes) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets_parameter(OSSL_KDF_PARAM_KEY, key), octets_parameter(OSSL_KDF_PARAM_INFO, info),
      OSSL_PARAM_construct_end()};
  Secret derived(bytes);
  check(derive_with("HKDF", parameters, derived), "OpenSSL derives a key with HKDF");
  return derived;
}

bool same_mac(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

DataKey DataKey::generate() {
  Secret bytes(kBytes);
  fill_random(bytes.data(), bytes.bytes());
  return DataKey(std::move(bytes));
}

DataKey::DataKey(Secret bytes) : bytes_(std::move(bytes)), id_(id_of(bytes_)) {
  check(bytes_.bytes() == kBytes, "a data key has 32 bytes");
}

Secret DataKey::file_key(std::string_view name) const {
  return hkdf_sha256(bytes_.view(), fmt::format("trireme file {}", name), kBytes);
}

std::string DataKey::mac(std::string_view purpose, std::string_view text) const {
  const Secret key = hkdf_sha256(bytes_.view(), fmt::format("trireme mac {}", purpose), kBytes);
  return hmac_sha256_hex(key.view(), text);
}

DataKey DataKey::next(std::int64_t number) const {
  return DataKey(hkdf_sha256(bytes_.view(), fmt::format("trireme next {}", number), kBytes));
}

}  // namespace trireme
