#include "src/keys/scrypt.h"

#include <cstdint>

#include <nlohmann/json.hpp>
#include <openssl/core_names.h>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/keys/derive.h"

namespace trireme {
namespace {

constexpr std::size_t kFreshSaltBytes = 16;
constexpr std::size_t kMostSaltBytes = 64;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;  // bytes
constexpr std::int64_t kMostPasses = 2;                      // over the memory
constexpr std::int64_t kBlockBytes = 128;                    // times r: RFC 7914, section 2

}  // namespace

ScryptParameters ScryptParameters::fresh() {
  ScryptParameters parameters;
  Secret salt(kFreshSaltBytes);
  fill_random(salt.data(), salt.bytes());
  parameters.salt = salt.view();
  return parameters;
}

JsonValue to_json(const ScryptParameters& parameters) {
  const auto count = [](int value) { return static_cast<std::uint64_t>(value); };
  return JsonValue(nlohmann::json{{"kdf", kScrypt},
                                  {"log2_n", count(parameters.log2_n)},
                                  {"r", count(parameters.r)},
                                  {"p", count(parameters.p)},
                                  {"salt", to_base64(parameters.salt)}});
}

ScryptParameters parse_scrypt(const JsonValue& object) {
  if (text_field(*object, "kdf") != kScrypt) {
    throw DataError("kdf is not scrypt");
  }
  ScryptParameters parameters{static_cast<int>(count_field(*object, "log2_n", 10, 23)),
                              static_cast<int>(count_field(*object, "r", 1, 64)),
                              static_cast<int>(count_field(*object, "p", 1, 64)),
                              from_base64(text_field(*object, "salt"))};
  if (parameters.salt.size() < kFreshSaltBytes || parameters.salt.size() > kMostSaltBytes) {
    throw DataError(
        fmt::format("salt does not have {} to {} bytes", kFreshSaltBytes, kMostSaltBytes));
  }
  const std::int64_t memory = (kBlockBytes * parameters.r) << parameters.log2_n;
  if (memory > kMostMemory || memory * parameters.p > kMostMemory * kMostPasses) {
    throw DataError(
        fmt::format("scrypt with log2_n {}, r {}, p {} would take more than {} MiB of "
                    "memory, or too much time",
                    parameters.log2_n, parameters.r, parameters.p, kMostMemory >> 20));
  }
  return parameters;
}

Secret scrypt(std::string_view passphrase, const ScryptParameters& parameters) {
  std::uint64_t n = std::uint64_t{1} << parameters.log2_n;
  auto r = static_cast<std::uint32_t>(parameters.r);
  auto p = static_cast<std::uint32_t>(parameters.p);
  std::uint64_t most_memory = 2 * static_cast<std::uint64_t>(kMostMemory);
  const OSSL_PARAM given[] = {
      octets_parameter(OSSL_KDF_PARAM_PASSWORD, passphrase),
      octets_parameter(OSSL_KDF_PARAM_SALT, parameters.salt),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most_memory),
      OSSL_PARAM_construct_end()};
  Secret derived(32);
  if (!derive_with("SCRYPT", given, derived)) {
    throw ResourceError(fmt::format(
        "scrypt failed, which turns a passphrase into a key: it needs {} MiB of free memory",
        (kBlockBytes * parameters.r << parameters.log2_n) >> 20));
  }
  return derived;
}

}  // namespace trireme
