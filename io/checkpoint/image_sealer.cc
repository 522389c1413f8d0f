#include "io/checkpoint/image_sealer.h"

#include <algorithm>
#include <utility>

namespace trireme {

ImageSealer::ImageSealer(const DataKey& key, std::string file, const std::byte* plain,
                         std::byte* image, std::int64_t bytes)
    : key_(Secret(key.bytes().view())),
      file_(std::move(file)),
      plain_(plain),
      image_(image),
      bytes_(bytes),
      is_sealed_(static_cast<std::size_t>((bytes + kSealedBlockBytes - 1) / kSealedBlockBytes)),
      tags_(is_sealed_.size()) {}

// Called with the mutex locked.
BlockCipher ImageSealer::take_cipher() {
  if (idle_.empty()) {
    return {key_, file_};
  }
  BlockCipher cipher = std::move(idle_.back());
  idle_.pop_back();
  return cipher;
}

void ImageSealer::seal(BlockCipher& cipher, std::int64_t block) {
  const std::int64_t begin = block * kSealedBlockBytes;
  const std::int64_t bytes = std::min(kSealedBlockBytes, bytes_ - begin);
  tags_[static_cast<std::size_t>(block)] =
      cipher.seal({block, begin + bytes == bytes_}, plain_ + begin, bytes, image_ + begin);
}

void ImageSealer::seal_until(std::int64_t end) {
  const std::int64_t blocks =
      std::min<std::int64_t>((end + kSealedBlockBytes - 1) / kSealedBlockBytes, std::ssize(tags_));
  std::unique_lock lock(mutex_);
  while (claimed_ < blocks) {
    const std::int64_t block = claimed_++;
    BlockCipher cipher = take_cipher();
    lock.unlock();
    seal(cipher, block);
    lock.lock();
    idle_.push_back(std::move(cipher));
    is_sealed_[static_cast<std::size_t>(block)] = 1;
    while (first_unsealed_ < std::ssize(is_sealed_) &&
           is_sealed_[static_cast<std::size_t>(first_unsealed_)] != 0) {
      ++first_unsealed_;
    }
    sealed_.notify_all();
  }
  sealed_.wait(lock, [&] { return first_unsealed_ >= blocks; });
}

std::vector<BlockTag> ImageSealer::tags() {
  seal_until(bytes_);
  return tags_;
}

}  // namespace trireme
