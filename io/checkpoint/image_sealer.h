// ImageSealer encrypts the image of a shard (src/keys/block_cipher.h) while others already use the
// blocks that are done: digests and the write to disk follow close behind. The threads that write a
// snapshot share it; each of them encrypts blocks when it would have to wait for one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "src/keys/block_cipher.h"

namespace trireme {

class ImageSealer {
 public:
  // plain: [bytes], complete before the first seal_until(). image: [bytes], may be the same memory.
  ImageSealer(const DataKey& key, std::string file, const std::byte* plain, std::byte* image,
              std::int64_t bytes);

  // Returns the identity of the key.
  const std::string& key_id() const { return key_.id(); }
  // Returns when the blocks that hold the first `end` bytes of the image are encrypted. Any thread.
  void seal_until(std::int64_t end);
  // Returns the tags of all blocks, after the rest of them has been encrypted.
  std::vector<BlockTag> tags();

 private:
  BlockCipher take_cipher();
  void seal(BlockCipher& cipher, std::int64_t block);

  const DataKey key_;
  const std::string file_;
  const std::byte* const plain_;
  std::byte* const image_;
  const std::int64_t bytes_;
  std::mutex mutex_;  // guards everything below, except for the tags of blocks that are claimed
  std::condition_variable sealed_;
  std::vector<BlockCipher> idle_;  // ciphers that no thread uses
  std::int64_t claimed_ = 0;       // blocks that some thread encrypts or has encrypted
  std::vector<char> is_sealed_;    // by block
  std::int64_t first_unsealed_ = 0;
  std::vector<BlockTag> tags_;
};

}  // namespace trireme
