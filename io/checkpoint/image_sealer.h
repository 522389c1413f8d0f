// ImageSealer encrypts the image of a shard (src/keys/block_cipher.h) while others already use the
// blocks that are done: digests and the write to disk follow close behind. Shared by the threads
// that write one snapshot.
#pragma once

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
  ImageSealer(const DataKey& key, const std::string& file, const std::byte* plain, std::byte* image,
              std::int64_t bytes);

  // Returns when the first `end` bytes of the image are encrypted, those of whole blocks. Any
  // thread.
  void seal_until(std::int64_t end);
  // Returns the tags of all blocks, after the rest of them has been encrypted.
  std::vector<BlockTag> tags();

 private:
  std::mutex mutex_;  // guards everything below
  BlockCipher cipher_;
  const std::byte* plain_;
  std::byte* image_;
  std::int64_t bytes_;
  std::int64_t sealed_ = 0;  // bytes that are encrypted
  std::vector<BlockTag> tags_;
};

}  // namespace trireme
