#include "src/base/digest.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// These are example values of FIPS 180-4 and NIST.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, APieceAtATimeIsTheSame) {
  Sha256 digest;
  for (int i = 0; i < 1000; ++i) {
    digest.update(std::string(1000, 'a'));
  }
  EXPECT_EQ(digest.finish_hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// These are test cases 1, 2 and 6 (a key longer than a block) of RFC 4231.
TEST(HmacSha256, PublishedVectors) {
  EXPECT_EQ(hmac_sha256_hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256_hex(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Returns the test buffer of xxHash's own sanity check, whose list (seed 0) has the expected
// values.
std::vector<unsigned char> sanity_buffer(std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  std::uint64_t generator = 2654435761U;
  for (auto& byte : buffer) {
    byte = static_cast<unsigned char>(generator >> 56);
    generator *= 11400714785074694797U;
  }
  return buffer;
}

TEST(Xxh3, PublishedVectors) {
  struct Known {
    std::size_t bytes;
    std::uint64_t digest;
  };
  for (const Known& known : {Known{0, 0x2D06800538D394C2},
                             {1, 0xC44BDFF4074EECDB},
                             {6, 0x27B56A84CD2D7325},
                             {12, 0xA713DAF0DFBB77E7},
                             {24, 0xA3FE70BF9D3510EB},
                             {48, 0x397DA259ECBA1F11},
                             {80, 0xBCDEFBBB2C47C90A},
                             {195, 0xCD94217EE362EC3A},
                             {403, 0xCDEB804D65C6DEA4},
                             {2048, 0xDD59E2C3A5F038E0}}) {
    const auto buffer = sanity_buffer(known.bytes);
    EXPECT_EQ(xxh3(buffer.data(), static_cast<std::int64_t>(buffer.size())), known.digest)
        << known.bytes;
  }
}

TEST(Xxh3, APieceAtATimeIsTheSame) {
  const auto buffer = sanity_buffer(100000);
  Xxh3 digest;
  std::size_t at = 0;
  for (std::size_t piece = 1; at < buffer.size(); piece = piece * 3 + 1) {
    const std::size_t bytes = std::min(piece, buffer.size() - at);
    digest.update(buffer.data() + at, static_cast<std::int64_t>(bytes));
    at += bytes;
  }
  EXPECT_EQ(digest.value(), xxh3(buffer.data(), static_cast<std::int64_t>(buffer.size())));
}

TEST(Hex64, ThereAndBack) {
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0xFEDCBA9876543210), "fedcba9876543210");
  EXPECT_EQ(parse_hex64("fedcba9876543210"), 0xFEDCBA9876543210);
  for (const char* wrong : {"", "0", "fedcba987654321", "fedcba98765432100", "fedcba987654321g",
                            "-edcba9876543210", "0xdcba9876543210", " edcba9876543210"}) {
    EXPECT_THROW(parse_hex64(wrong), DataError) << wrong;
  }
}

TEST(Hex64, ARowThereAndBack) {
  const std::vector<std::uint64_t> row = {0, 0xFEDCBA9876543210, 1};
  EXPECT_EQ(join_hex64(row), "0000000000000000fedcba98765432100000000000000001");
  EXPECT_EQ(split_hex64(join_hex64(row)), row);
  EXPECT_TRUE(split_hex64("").empty());
  EXPECT_THROW(split_hex64("0000000000000000f"), DataError);
}

}  // namespace
}  // namespace trireme
