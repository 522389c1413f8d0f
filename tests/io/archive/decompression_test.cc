#include "io/archive/decompression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/io/archive/make_archives.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Text of words that compresses to about a fifth.
std::string sample_text(std::size_t bytes) {
  std::string text;
  for (std::uint32_t i = 1; text.size() < bytes; ++i) {
    text += fmt::format("{} ", i * 2654435761U % 5000);
  }
  text.resize(bytes);
  return text;
}

std::string packed_as(Compression compression, std::string_view text) {
  return compression == Compression::gzip ? gzip_of(text) : zstd_of(text);
}

std::string unpacked(const std::string& packed, Compression compression,
                     const DecompressionLimits& limits = {}, std::int64_t at_once = 1000) {
  TextStream from(packed, at_once);
  return all_of(*decompress(from, compression, "x.bin", limits), at_once);
}

std::string refusal_of(const std::string& packed, Compression compression,
                       const DecompressionLimits& limits = {}) {
  return message_of<DataError>([&] { (void)unpacked(packed, compression, limits); });
}

class DecompressionTest : public testing::TestWithParam<Compression> {};

TEST_P(DecompressionTest, GivesTheTextInPiecesOfAnySize) {
  for (const std::size_t bytes : {0, 1, 1000, 400'000}) {
    const std::string text = sample_text(bytes);
    for (const std::int64_t at_once : {1, 7, 1'000'000}) {
      if (bytes < 10'000 || at_once > 1) {
        EXPECT_EQ(unpacked(packed_as(GetParam(), text), GetParam(), {}, at_once), text);
      }
    }
  }
}

TEST_P(DecompressionTest, ReadsJoinedFiles) {
  const std::string joined = packed_as(GetParam(), "one") + packed_as(GetParam(), "") +
                             packed_as(GetParam(), sample_text(3000));
  EXPECT_EQ(unpacked(joined, GetParam()), "one" + sample_text(3000));
  EXPECT_EQ(unpacked(joined, GetParam(), {}, 1), "one" + sample_text(3000));
}

TEST_P(DecompressionTest, RefusesFilesThatAreCutOff) {
  const std::string packed = packed_as(GetParam(), sample_text(300));
  const std::string joined = packed + packed;
  for (std::size_t bytes = 0; bytes < joined.size(); ++bytes) {
    if (bytes != packed.size()) {
      EXPECT_THAT(refusal_of(joined.substr(0, bytes), GetParam()),
                  AllOf(HasSubstr("x.bin: "), HasSubstr("cut off")))
          << bytes;
    }
  }
}

TEST_P(DecompressionTest, RefusesDamage) {
  const std::string packed = packed_as(GetParam(), sample_text(3000));
  int refused = 0;
  for (std::size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    try {
      // gzip's header has a time and other fields that no checksum covers.
      EXPECT_EQ(unpacked(damaged, GetParam()), sample_text(3000)) << at;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, std::ssize(packed) - 10);
  EXPECT_THAT(refusal_of("plain text", GetParam()), HasSubstr("damaged"));
  EXPECT_THAT(refusal_of(packed + "more", GetParam()), HasSubstr("x.bin"));
}

TEST_P(DecompressionTest, RefusesWhatExpandsWithoutEnd) {
  const std::string bomb = packed_as(GetParam(), std::string(4'000'000, 'a'));
  ASSERT_LT(bomb.size(), 5000U);
  const DecompressionLimits limits = {.ratio = 100, .free_bytes = 100'000};
  EXPECT_THAT(refusal_of(bomb, GetParam(), limits),
              AllOf(HasSubstr("more than 100 times"), HasSubstr("decompress it")));
  EXPECT_EQ(unpacked(bomb, GetParam()).size(), 4'000'000U) << "small files may expand further";
}

INSTANTIATE_TEST_SUITE_P(Formats, DecompressionTest,
                         testing::Values(Compression::gzip, Compression::zstd),
                         [](const auto& format) {
                           return format.param == Compression::gzip ? "gzip" : "zstd";
                         });

TEST(Decompression, BoundsTheWindowOfZstd) {
  const std::string wide = zstd_of(sample_text(3'000'000), 22);
  EXPECT_EQ(unpacked(wide, Compression::zstd, {.window_log = 22}), sample_text(3'000'000));
  EXPECT_THAT(refusal_of(wide, Compression::zstd, {.window_log = 21}), HasSubstr("memory"));
}

// Written by zstd 1.5.4 and gzip 1.12 on Debian 12.
TEST(Decompression, ReadsWhatTheProgramsWrite) {
  const auto from_hex = [](std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    }
    return bytes;
  };
  EXPECT_EQ(
      unpacked(from_hex("28b52ffd045831000066697273740ac316ad2c28b52ffd00583900007365636f6e640a"),
               Compression::zstd),
      "first\nsecond\n");
  EXPECT_EQ(unpacked(from_hex("1f8b08000000000000034bcb2c2a2ee102002ab34ac7060000001f8b080000000000"
                              "02032b4e4dcecf4be102007ec00f0607000000"),
                     Compression::gzip),
            "first\nsecond\n");
  const std::string skippable = std::string("\x50\x2A\x4D\x18\3\0\0\0abc", 11);
  EXPECT_EQ(unpacked(skippable + zstd_of("text"), Compression::zstd), "text");
}

TEST(Decompression, KnowsFilesByTheEndOfTheirNames) {
  for (const auto& [name, compression, inside] :
       std::vector<std::tuple<const char*, Compression, const char*>>{
           {"a/b.jsonl.gz", Compression::gzip, "a/b.jsonl"},
           {"b.txt.zst", Compression::zstd, "b.txt"},
           {"b.tgz", Compression::gzip, "b.tar"},
           {"B.TXT.GZ", Compression::gzip, "B.TXT"},
           {"OK.TAR.Zst", Compression::zstd, "OK.TAR"},
           {"B.TGZ", Compression::gzip, "B.tar"},
           {"b.tar", Compression::none, "b.tar"},
           {"gz", Compression::none, "gz"},
           {"b.gz.txt", Compression::none, "b.gz.txt"}}) {
    EXPECT_EQ(compression_of(name), compression) << name;
    EXPECT_EQ(name_inside(name), inside);
  }
}

}  // namespace
}  // namespace trireme
