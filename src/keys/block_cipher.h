// BlockCipher encrypts and decrypts one file in blocks of 1 MiB, which can be read in any order. It
// follows the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizar 2015) with AES-256-GCM:
//
//   key      that of the file (DataKey::file_key)
//   nonce    11 bytes: the block's number in the file, big-endian, from 0
//            1 byte: 1 for the last block of the file, else 0
//   tag      16 bytes for each block, which are kept outside the file
//
// A block that was changed, moved to another place or file, or that follows the last one, does not
// open. An encrypted file has as many bytes as the plain one.
//
// A key must never encrypt two different contents under one name: that would disclose both. Not
// thread-safe: each thread has its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "src/keys/data_key.h"

namespace trireme {

inline constexpr std::int64_t kSealedBlockBytes = std::int64_t{1} << 20;
inline constexpr std::size_t kTagBytes = 16;
using BlockTag = std::array<unsigned char, kTagBytes>;

// Says which block of a file it is.
struct BlockPlace {
  std::int64_t number = 0;
  bool is_last = false;
};

class BlockCipher {
 public:
  BlockCipher(const DataKey& key, std::string_view file);
  ~BlockCipher();
  BlockCipher(BlockCipher&&) noexcept;
  BlockCipher& operator=(BlockCipher&&) noexcept;

  // Encrypts plain [bytes] to sealed [bytes], which may be the same memory.
  BlockTag seal(BlockPlace place, const std::byte* plain, std::int64_t bytes, std::byte* sealed);
  // Decrypts sealed [bytes] to plain [bytes], which may be the same memory. Returns false if the
  // block is not the one that was encrypted here; then `plain` holds zeros.
  [[nodiscard]] bool open(BlockPlace place, const std::byte* sealed, std::int64_t bytes,
                          const BlockTag& tag, std::byte* plain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme
