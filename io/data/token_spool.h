// TokenSpool is a temporary file that takes the tokens of a shard until their number is known. If
// the shard is to be encrypted, the spool is too, with a key that only this object has: no plain
// text reaches the disk, not even that of a pack that is killed. The file is removed with the
// object. For one thread. Private to io/data.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "src/base/file.h"
#include "src/keys/block_cipher.h"

namespace trireme {

class TokenSpool {
 public:
  // Replaces the file `path`.
  TokenSpool(std::filesystem::path path, bool is_encrypted);
  ~TokenSpool();
  TokenSpool(const TokenSpool&) = delete;
  TokenSpool& operator=(const TokenSpool&) = delete;

  void append(const char* from, std::int64_t bytes);
  // Writes what append() has held back. Call it once, before read().
  void end();
  // Reads `bytes` bytes at `offset`; fast if offsets ascend.
  void read(std::int64_t offset, std::byte* to, std::int64_t bytes);

 private:
  // Encrypts and writes the first `bytes` bytes of block_.
  void put_block(std::size_t bytes, bool is_last);
  void load_block(std::int64_t number);

  std::filesystem::path path_;
  File file_;
  std::optional<BlockCipher> cipher_;  // if it is encrypted
  std::vector<BlockTag> tags_;         // of the blocks written
  std::vector<std::byte> block_;       // plain: appended but not written, or the one loaded
  std::vector<std::byte> sealed_;
  std::int64_t loaded_ = -1;  // number of the block in block_ that read() has loaded
  std::int64_t bytes_ = 0;    // appended
};

}  // namespace trireme
