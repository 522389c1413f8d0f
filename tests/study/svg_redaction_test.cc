#include "src/study/svg_redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SvgRedaction, PicturesStayWellFormed) {
  constexpr const char* kParts[][2] = {
      {"<text>password: hunter2x y</text>", "<text>password: REDACTED</text>"},
      {"<text x=\"5\">{&quot;pin&quot;: &quot;hunter2x&quot;}</text>",
       "<text x=\"5\">{&quot;pin&quot;: &quot;REDACTED&quot;}</text>"},
      {"<text>\npassword: hunter2x\n</text>", "<text>\npassword: REDACTED\n</text>"},
      {"<title>PASSWORD=hunter2x&lt;&amp;y</title>", "<title>PASSWORD=REDACTED</title>"},
      {"<!-- password: hunter2x y --><g/>", "<!-- password: REDACTED--><g/>"},
      {"<a href=\"https://joe:hunter2x@h/\"/>", "<a href=\"https://REDACTED@h/\"/>"},
      {"<a title='cookie: hunter2x'>x</a>", "<a title='cookie: REDACTED'>x</a>"},
      {"<password a=\"b\">hunter2x</password>", "<password a=\"REDACTED\">REDACTED</password>"},
      {"<g data-password=\"hunter2x\" id=\"a\"/>", "<g data-password=\"REDACTED\" id=\"a\"/>"},
      {"<text>the secret\n<tspan>cookie: a; b</tspan></text>",
       "<text>the secret\n<tspan>cookie: REDACTED</tspan></text>"},
      {"<text>x &lt; 5 &amp; y</text>", "<text>x &lt; 5 &amp; y</text>"}};
  for (const auto& [part, expected] : kParts) {
    for (const std::string begin :
         {"<svg>\n", "<?xml version=\"1.0\"?>\n<!-- a -->\n<svg a=\"1\">"}) {
      EXPECT_EQ(redact(begin + part + "</svg>\n").text, begin + expected + "</svg>\n");
    }
  }
}

TEST(SvgRedaction, OtherTextsAreNoPictures) {
  EXPECT_FALSE(is_svg("x <svg>"));
  EXPECT_FALSE(is_svg("<html><svg>"));
  EXPECT_FALSE(is_svg("<"));
  EXPECT_TRUE(is_svg("\ufeff <?xml?><svg"));
  for (const char* text :
       {"<svg", "<svg a=\"", "<svg><!--", "<svg><![CDATA[", "<svg></", "<svg>&"}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

TEST(SvgRedaction, ComparesTags) {
  EXPECT_TRUE(have_same_tags("<a b=\"c\">x</a>", "<a b=\"d>\">y</a>"));
  EXPECT_FALSE(have_same_tags("<a b=\"c\">x</a>", "<a b=\"c\">x"));
  EXPECT_FALSE(have_same_tags("<a b=\"c\">", "<a d=\"c\">"));
}

}  // namespace
}  // namespace trireme
