#include "src/app/model/whole_characters.h"

#include <gtest/gtest.h>

#include "io/tokens/unicode.h"

namespace trireme {
namespace {

TEST(WholeCharacters, NoPieceEndsWithinACharacter) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa3z";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    WholeCharacters characters;
    std::string all;
    for (std::size_t at = 0; at < text.size(); at += size) {
      const std::string piece = characters.add(std::string_view(text).substr(at, size));
      EXPECT_TRUE(is_utf8(piece));
      EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos);
      all += piece;
    }
    EXPECT_EQ(all + characters.rest(), text) << size;
  }
}

TEST(WholeCharacters, OtherBytesAreReplacedAsInOnePiece) {
  for (const std::string text :
       {"a\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x9a", "\xc3\xc3\xa9", "\x80", "\xf8\x88\x80\x80",
        "\xe0\x80\xa9z", "\xf0\x80", "\xc0\xaf", "\xf5"}) {
    WholeCharacters characters;
    std::string all;
    for (const char byte : text) {
      all += characters.add({&byte, 1});
      EXPECT_TRUE(is_utf8(all));
    }
    EXPECT_EQ(all + characters.rest(), with_replacements(text));
  }
}

}  // namespace
}  // namespace trireme
