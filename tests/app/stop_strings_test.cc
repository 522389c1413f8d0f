#include "src/app/model/stop_strings.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Returns the text that is passed on if `text` arrives in pieces of `piece` bytes.
std::string given_out(const std::vector<std::string>& stops, const std::string& text,
                      std::size_t piece, bool& stopped) {
  StopStrings stop(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size() && !stop.stopped(); at += piece) {
    out += stop.add(std::string_view(text).substr(at, piece));
  }
  out += stop.rest();
  stopped = stop.stopped();
  return out;
}

TEST(StopStrings, EndTheTextBeforeTheFirstThatAppears) {
  for (std::size_t piece = 1; piece < 12; ++piece) {
    bool stopped = false;
    EXPECT_EQ(given_out({"END"}, "one EN two END three END", piece, stopped), "one EN two ");
    EXPECT_TRUE(stopped);
    EXPECT_EQ(given_out({"aab"}, "aaab", piece, stopped), "a");
    EXPECT_TRUE(stopped);
    EXPECT_EQ(given_out({"\n\n"}, "a\nb\n", piece, stopped), "a\nb\n");
    EXPECT_FALSE(stopped);
    EXPECT_EQ(given_out({}, "anything", piece, stopped), "anything");
    EXPECT_FALSE(stopped);
  }
  bool stopped = false;
  EXPECT_EQ(given_out({"three", "two"}, "one two three", 100, stopped), "one ");
}

TEST(StopStrings, HoldBackOnlyWhatMayBecomeOne) {
  StopStrings stop({"END"});
  EXPECT_EQ(stop.add("text E"), "text ");
  EXPECT_EQ(stop.add("x"), "Ex");
  EXPECT_EQ(stop.add("EN"), "");
  EXPECT_EQ(stop.rest(), "EN");
  EXPECT_THROW(StopStrings({"a", ""}), ConfigError);
}

}  // namespace
}  // namespace trireme
