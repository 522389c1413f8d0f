#include "src/keys/block_cipher.h"

#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

DataKey counting_key() {
  Secret bytes(DataKey::kBytes);
  for (std::size_t i = 0; i < bytes.bytes(); ++i) {
    bytes.data()[i] = static_cast<unsigned char>(i);
  }
  return DataKey(std::move(bytes));
}

std::string hex(const unsigned char* data, std::size_t bytes) {
  std::string digits;
  for (std::size_t i = 0; i < bytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    digits += kDigits[data[i] >> 4U];
    digits += kDigits[data[i] & 15U];
  }
  return digits;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (const char c : text) {
    bytes.push_back(static_cast<std::byte>(c));
  }
  return bytes;
}

struct Sealed {
  std::vector<std::byte> bytes;
  BlockTag tag;
};

Sealed seal(BlockCipher& cipher, BlockPlace place, std::string_view text) {
  Sealed sealed{bytes_of(text), {}};
  sealed.tag =
      cipher.seal(place, sealed.bytes.data(), std::ssize(sealed.bytes), sealed.bytes.data());
  return sealed;
}

// Returns the text, or "(refused)".
std::string open(BlockCipher& cipher, BlockPlace place, const Sealed& sealed) {
  std::vector<std::byte> plain(sealed.bytes.size(), std::byte{0x55});
  const bool is_open =
      cipher.open(place, sealed.bytes.data(), std::ssize(sealed.bytes), sealed.tag, plain.data());
  if (!is_open) {
    EXPECT_EQ(plain, std::vector<std::byte>(plain.size()));
    return "(refused)";
  }
  return {reinterpret_cast<const char*>(plain.data()), plain.size()};
}

// The values are those of Python's cryptography package, by tests/keys/golden.py.
TEST(BlockCipher, IsWhatTheFormatSays) {
  const DataKey key = counting_key();
  EXPECT_EQ(key.id(), "9b23a1c602ba17944091e8a0c0536d77");
  EXPECT_EQ(key.mac("keys", "text"),
            "33478763567d381c4fb1078452d44635f456c72f37c24e33ea1b53e1f61f47b8");
  EXPECT_EQ(key.next(7).id(), "99c48fa6a540391eba9fc570bf92b976");
  const Secret file_key = key.file_key("shard-00000.safetensors");
  EXPECT_EQ(hex(file_key.data(), file_key.bytes()),
            "c604736e9a8804cc8666c5921b7475ce1c24c813e6a343eaf103a1dba595f1d6");
  BlockCipher cipher(key, "shard-00000.safetensors");
  const Sealed first = seal(cipher, {0, false}, "hello wo");
  EXPECT_EQ(hex(reinterpret_cast<const unsigned char*>(first.bytes.data()), 8), "b54115665feda659");
  EXPECT_EQ(hex(first.tag.data(), kTagBytes), "bed0ae3d7ea97b32b2cb1a64a0b265bc");
  const Sealed last = seal(cipher, {70000, true}, "rld");
  EXPECT_EQ(hex(reinterpret_cast<const unsigned char*>(last.bytes.data()), 3), "f181c8");
  EXPECT_EQ(hex(last.tag.data(), kTagBytes), "199973e990e4a8f8e99069eefd209c40");
}

TEST(BlockCipher, OpensOnlyWhatWasSealedAtThatPlace) {
  const DataKey key = counting_key();
  BlockCipher cipher(key, "a");
  BlockCipher other_file(key, "b");
  BlockCipher other_key(DataKey::generate(), "a");
  const Sealed sealed = seal(cipher, {3, false}, "some text");
  EXPECT_EQ(open(cipher, {3, false}, sealed), "some text");
  EXPECT_EQ(open(cipher, {4, false}, sealed), "(refused)");
  EXPECT_EQ(open(cipher, {3, true}, sealed), "(refused)");
  EXPECT_EQ(open(other_file, {3, false}, sealed), "(refused)");
  EXPECT_EQ(open(other_key, {3, false}, sealed), "(refused)");
  for (std::size_t i = 0; i < sealed.bytes.size(); ++i) {
    Sealed changed = sealed;
    changed.bytes[i] ^= std::byte{1};
    EXPECT_EQ(open(cipher, {3, false}, changed), "(refused)") << "byte " << i;
  }
  for (std::size_t i = 0; i < kTagBytes; ++i) {
    Sealed changed = sealed;
    changed.tag[i] ^= 0x80U;
    EXPECT_EQ(open(cipher, {3, false}, changed), "(refused)") << "tag byte " << i;
  }
  Sealed shorter = sealed;
  shorter.bytes.pop_back();
  EXPECT_EQ(open(cipher, {3, false}, shorter), "(refused)");
  EXPECT_EQ(open(cipher, {3, false}, sealed), "some text");  // the cipher is of use after refusals
}

TEST(BlockCipher, TakesEmptyAndWholeBlocks) {
  const DataKey key = counting_key();
  BlockCipher cipher(key, "a");
  for (const std::size_t bytes : {std::size_t{0}, static_cast<std::size_t>(kSealedBlockBytes)}) {
    const std::string text(bytes, 'x');
    const Sealed sealed = seal(cipher, {0, true}, text);
    EXPECT_EQ(open(cipher, {0, true}, sealed), text);
  }
}

}  // namespace
}  // namespace trireme
