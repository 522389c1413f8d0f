#include "io/checkpoint/image_sealer.h"

#include <algorithm>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Returns bytes that differ from block to block.
std::vector<std::byte> numbered_bytes(std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::int64_t begin = 0; begin < count; begin += kSealedBlockBytes) {
    std::memset(bytes.data() + begin, static_cast<int>(1 + begin / kSealedBlockBytes),
                static_cast<std::size_t>(std::min(kSealedBlockBytes, count - begin)));
  }
  return bytes;
}

// Expects that the image opens, block by block, to the plain bytes.
void expect_sealed(const DataKey& key, const std::vector<std::byte>& plain,
                   const std::vector<std::byte>& image, const std::vector<BlockTag>& tags) {
  const auto bytes = std::ssize(plain);
  BlockCipher cipher(key, "shard");
  std::vector<std::byte> opened(plain.size());
  for (std::int64_t i = 0; i < std::ssize(tags); ++i) {
    const std::int64_t begin = i * kSealedBlockBytes;
    const std::int64_t length = std::min(kSealedBlockBytes, bytes - begin);
    EXPECT_TRUE(cipher.open({i, begin + length == bytes}, image.data() + begin, length,
                            tags[static_cast<std::size_t>(i)], opened.data() + begin))
        << i;
  }
  EXPECT_TRUE(opened == plain);
}

// Writers ask for the same blocks at the same time, each in steps of its own, and may read the
// bytes that they asked for.
TEST(ImageSealer, SeveralWritersShareTheBlocks) {
  for (const std::int64_t bytes :
       {std::int64_t{1}, kSealedBlockBytes, 32 * kSealedBlockBytes + 3}) {
    const DataKey key = DataKey::generate();
    const std::vector<std::byte> plain = numbered_bytes(bytes);
    std::vector<std::byte> image(plain.size());
    ImageSealer sealer(key, "shard", plain.data(), image.data(), bytes);
    std::vector<std::vector<std::byte>> written(3);
    std::latch start(std::ssize(written));
    std::vector<std::thread> writers;
    for (std::int64_t w = 0; w < std::ssize(written); ++w) {
      writers.emplace_back([&, w] {
        const std::int64_t step = kSealedBlockBytes / 2 + w;
        std::vector<std::byte>& own = written[static_cast<std::size_t>(w)];
        start.arrive_and_wait();
        for (std::int64_t at = 0; at < bytes; at += step) {
          const std::int64_t end = std::min(at + step, bytes);
          sealer.seal_until(end);
          own.insert(own.end(), image.data() + at, image.data() + end);
        }
      });
    }
    for (std::thread& writer : writers) {
      writer.join();
    }
    const std::vector<BlockTag> tags = sealer.tags();
    ASSERT_EQ(std::ssize(tags), (bytes + kSealedBlockBytes - 1) / kSealedBlockBytes);
    expect_sealed(key, plain, image, tags);
    for (const std::vector<std::byte>& each : written) {
      EXPECT_TRUE(each == image) << "what a writer read was encrypted before";
    }
  }
}

TEST(ImageSealer, EncryptsInPlaceAndNotBeyondTheBlockAskedFor) {
  const DataKey key = DataKey::generate();
  const std::vector<std::byte> plain = numbered_bytes(3 * kSealedBlockBytes);
  std::vector<std::byte> image = plain;
  ImageSealer sealer(key, "shard", image.data(), image.data(), std::ssize(image));
  EXPECT_EQ(sealer.key_id(), key.id());
  sealer.seal_until(kSealedBlockBytes + 1);
  EXPECT_NE(std::memcmp(image.data() + kSealedBlockBytes, plain.data() + kSealedBlockBytes, 64), 0);
  EXPECT_EQ(std::memcmp(image.data() + 2 * kSealedBlockBytes, plain.data() + 2 * kSealedBlockBytes,
                        kSealedBlockBytes),
            0);
  expect_sealed(key, plain, image, sealer.tags());
}

}  // namespace
}  // namespace trireme
