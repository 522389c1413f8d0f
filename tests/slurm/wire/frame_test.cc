#include "slurm/wire/frame.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(Frame, ComesBackFromAnyPieces) {
  const std::string stream = frame_of("one") + frame_of("") + frame_of(std::string(3000, 'x'));
  for (std::size_t piece : {1, 2, 7, 100, 10'000}) {
    FrameReader reader;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      while (auto payload = reader.next()) {
        got.push_back(*payload);
      }
    }
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0], "one");
    EXPECT_EQ(got[1], "");
    EXPECT_EQ(got[2].size(), 3000U);
  }
}

TEST(Frame, AnotherProtocolIsFoundAtItsFirstByte) {
  FrameReader reader;
  reader.feed("G");
  EXPECT_THROW((void)reader.next(), DataError);
}

TEST(Frame, AStrangerMaySayLittle) {
  const std::string frame = frame_of(std::string(kMostStrangerBytes + 1, 'x'));
  FrameReader stranger;
  stranger.feed(frame.substr(0, kFrameHeadBytes));
  EXPECT_THROW((void)stranger.next(), DataError);
  FrameReader friendly;
  friendly.trust();
  friendly.feed(frame);
  EXPECT_TRUE(friendly.next());
}

// A stranger's data is limited to one frame, however much arrives.
TEST(Frame, AStrangersBytesAreBounded) {
  FrameReader stranger;
  EXPECT_EQ(stranger.room(), kFrameHeadBytes + kMostStrangerBytes);
  stranger.feed(std::string(stranger.room(), 'T'));
  EXPECT_EQ(stranger.room(), 0U);
  EXPECT_THROW((void)stranger.next(), DataError);
}

// This would take hours if every frame moved all bytes behind it.
TEST(Frame, AFloodOfEmptyFramesCostsNoMoreThanItsBytes) {
  constexpr std::size_t kFrames = std::size_t{1} << 22;
  FrameReader reader;
  reader.trust();
  std::string flood;
  for (std::size_t i = 0; i < kFrames; ++i) {
    flood += frame_of("");
  }
  reader.feed(flood);
  std::size_t got = 0;
  while (reader.next()) {
    ++got;
  }
  EXPECT_EQ(got, kFrames);
}

TEST(Frame, NobodyMaySayMoreThanAFrameHolds) {
  FrameReader reader;
  reader.trust();
  reader.feed(std::string("TRL1\xff\xff\xff\xff"));
  EXPECT_THROW((void)reader.next(), DataError);
}

}  // namespace
}  // namespace trireme
