#include "src/base/digest.h"

#include <charconv>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <xxhash.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {

namespace {

using RawDigest = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string hex_of(const RawDigest& raw, unsigned length) {
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += fmt::format("{:02x}", raw[i]);
  }
  return hex;
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
        "OpenSSL starts a SHA-256 digest");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, std::int64_t bytes) {
  check(EVP_DigestUpdate(state_->context, data, static_cast<std::size_t>(bytes)) == 1,
        "OpenSSL updates a SHA-256 digest");
}

std::string Sha256::finish_hex() {
  RawDigest raw{};
  unsigned length = 0;
  check(EVP_DigestFinal_ex(state_->context, raw.data(), &length) == 1,
        "OpenSSL finishes a SHA-256 digest");
  return hex_of(raw, length);
}

std::string sha256_hex(std::string_view text) {
  Sha256 digest;
  digest.update(text);
  return digest.finish_hex();
}

std::string hmac_sha256_hex(std::string_view key, std::string_view text) {
  RawDigest raw{};
  unsigned length = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  check(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), raw.data(),
             &length) != nullptr,
        "OpenSSL computes an HMAC");
  return hex_of(raw, length);
}

std::uint64_t xxh3(const void* data, std::int64_t bytes) {
  return XXH3_64bits(data, static_cast<std::size_t>(bytes));
}

struct Xxh3::State {
  XXH3_state_t* state = XXH3_createState();
  ~State() { XXH3_freeState(state); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(state_->state); }
Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

void Xxh3::update(const void* data, std::int64_t bytes) {
  XXH3_64bits_update(state_->state, data, static_cast<std::size_t>(bytes));
}

std::uint64_t Xxh3::value() const { return XXH3_64bits_digest(state_->state); }

std::string hex64(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t parse_hex64(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || code != std::errc() || end != text.data() + text.size()) {
    throw DataError(fmt::format("'{}' is not a digest of 16 hexadecimal digits", text));
  }
  return value;
}

std::string join_hex64(const std::vector<std::uint64_t>& values) {
  std::string text;
  text.reserve(16 * values.size());
  for (const std::uint64_t value : values) {
    text += hex64(value);
  }
  return text;
}

std::vector<std::uint64_t> split_hex64(std::string_view text) {
  std::vector<std::uint64_t> values;
  values.reserve(text.size() / 16);
  for (std::size_t at = 0; at < text.size(); at += 16) {
    values.push_back(parse_hex64(text.substr(at, 16)));
  }
  return values;
}

}  // namespace trireme
