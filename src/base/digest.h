// Computes digests: SHA-256 (OpenSSL) for what people compare and archive, and XXH3-64 for blocks
// on the data path.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Sha256 computes SHA-256 (FIPS 180-4) incrementally, for one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(const void* data, std::int64_t bytes);
  void update(std::string_view text) {
    update(text.data(), static_cast<std::int64_t>(text.size()));
  }
  // Ends the computation and returns 64 hexadecimal digits.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view text);
// Returns HMAC-SHA-256 (RFC 2104) as 64 hexadecimal digits; the key may have any length.
std::string hmac_sha256_hex(std::string_view key, std::string_view text);

// Returns the 64-bit XXH3 with seed 0.
std::uint64_t xxh3(const void* data, std::int64_t bytes);
// Computes the same digest incrementally.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  void update(const void* data, std::int64_t bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Converts to and from 16 lower-case digits. Throws DataError for any other text.
std::string hex64(std::uint64_t value);
std::uint64_t parse_hex64(std::string_view text);
// Converts a list of values to and from their digits without separators.
std::string join_hex64(const std::vector<std::uint64_t>& values);
std::vector<std::uint64_t> split_hex64(std::string_view text);

}  // namespace trireme
