#include "io/checkpoint/image_sealer.h"

#include <algorithm>

namespace trireme {

ImageSealer::ImageSealer(const DataKey& key, const std::string& file, const std::byte* plain,
                         std::byte* image, std::int64_t bytes)
    : cipher_(key, file), plain_(plain), image_(image), bytes_(bytes) {}

void ImageSealer::seal_until(std::int64_t end) {
  for (bool is_done = false; !is_done;) {
    const std::lock_guard lock(mutex_);  // for one block, so that others need not wait for `end`
    is_done = sealed_ >= std::min(end, bytes_);
    if (!is_done) {
      const std::int64_t bytes = std::min(kSealedBlockBytes, bytes_ - sealed_);
      tags_.push_back(cipher_.seal({sealed_ / kSealedBlockBytes, sealed_ + bytes == bytes_},
                                   plain_ + sealed_, bytes, image_ + sealed_));
      sealed_ += bytes;
    }
  }
}

std::vector<BlockTag> ImageSealer::tags() {
  seal_until(bytes_);
  const std::lock_guard lock(mutex_);
  return tags_;
}

}  // namespace trireme
