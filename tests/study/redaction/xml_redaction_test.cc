#include "src/study/redaction/xml_redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(XmlRedaction, PicturesStayWellFormed) {
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

TEST(XmlRedaction, ReplacesNoMoreThanTheTextOfAnElement) {
  constexpr const char* kPairs[][2] = {
      {"<wsse:Password>x</wsse:Password> b", "<wsse:Password>REDACTED</wsse:Password> b"},
      {"<a:pin b=\"c\" d='e'>x</a:pin>", "<a:pin b=\"REDACTED\" d='REDACTED'>REDACTED</a:pin>"},
      {"<b password=\"x\"/><c/>", "<b password=\"REDACTED\"/><c/>"},
      {"<password value=\"x\"/> b", "<password value=\"REDACTED\"/> b"},
      {"<add key=\"password\" value=\"x\"/>", "<add key=\"password\" value=\"REDACTED\"/>"},
      {"<key>Password</key>\n\t<string>x</string>\n",
       "<key>Password</key>\n\t<string>REDACTED</string>\n"},
      {"<log>pin: x</log> b", "<log>pin: REDACTED</log> b"},
      {"<b>export PASSWORD=x</b> c", "<b>export PASSWORD=REDACTED</b> c"},
      {"PASSWORD=a</b>x", "PASSWORD=REDACTED"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(XmlRedaction, EntitiesBelongToASecret) {
  constexpr const char* kPairs[][2] = {
      {"<a>the password is hun&lt;ter2x</a> b", "<a>the password is REDACTED</a> b"},
      {"<a>the password is hun&quot;ter2x</a>", "<a>the password is REDACTED</a>"},
      {"<a>x --pin=hun&quot;ter2x --n 4</a>", "<a>x --pin=REDACTED --n 4</a>"},
      {"<a>x --pin hun&amp;ter2x --n 4</a>", "<a>x --pin REDACTED --n 4</a>"},
      {"<a b=\"x --pin=&quot;hun ter2x&quot; --n\"/>",
       "<a b=\"x --pin=&quot;REDACTED&quot; --n\"/>"},
      {"<a>{&quot;pin&quot;: &quot;x&quot;}</a>", "<a>{&quot;pin&quot;: &quot;REDACTED&quot;}</a>"},
      // In no element
      {"the password is hun&lt;ter2x now", "the password is REDACTED now"},
      {"x --pin hun&amp;ter2x --n 4", "x --pin REDACTED --n 4"},
      {"http://h/?pin=x&amp;b=1", "http://h/?pin=REDACTED&amp;b=1"},
      {"<a>1 &lt; 2 &amp;&amp; 3</a>", "<a>1 &lt; 2 &amp;&amp; 3</a>"}};
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(XmlRedaction, NumericReferences) {
  constexpr const char* kPairs[][2] = {
      {"<a m=\"user,password&#10;joe,x1&#10;end\"/>",
       "<a m=\"user,password&#10;joe,REDACTED&#10;end\"/>"},
      {"<a m=\"a&#xA;password: x1&#xA;b: 1\"/>", "<a m=\"a&#xA;password: REDACTED&#xA;b: 1\"/>"},
      {"<a m=\"a\npassword: x1\nb: 1\"/>", "<a m=\"a\npassword: REDACTED\nb: 1\"/>"},
      {"<a m='pin&#9;x1&#13;&#10;b: 1'/>", "<a m='pin&#9;REDACTED&#13;&#10;b: 1'/>"},
      {"<a>--password&#x20;x1</a>", "<a>--password REDACTED</a>"},
      {"<a>&#112;in&#58; x1</a>", "<a>pin: REDACTED</a>"},
      {"<a>--pin x&#43;y&#x3c;z --n 4</a>", "<a>--pin REDACTED --n 4</a>"},
      // Entities of other characters
      {"<a>b&nbsp;c &amp;lt; --pin x1 &#x0; &#5</a>",
       "<a>b&nbsp;c &amp;lt; --pin REDACTED &#x0; &amp;#5</a>"},
      {"<a>f&#252;r --pin x&#x1F600;1 b</a>", "<a>f\u00fcr --pin REDACTED b</a>"},
      {"<a>f&#252;r a&#10;b&#99999999999;</a>", "<a>f&#252;r a&#10;b&#99999999999;</a>"}};
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(XmlRedaction, CommentsEndWhereTheyDid) {
  constexpr const char* kPairs[][2] = {
      {"<!-- pin: x -->\n<a/>\n", "<!-- pin: REDACTED-->\n<a/>\n"},
      {"<a><!-- export PIN=x y --><b/></a>", "<a><!-- export PIN=REDACTED y --><b/></a>"},
      {"x <!--\npin: x\nb: 1\n--> y", "x <!--\npin: REDACTED\nb: 1\n--> y"},
      {"<![CDATA[pin: x]]> y", "<![CDATA[pin: REDACTED]]> y"},
      {"<!-- the end --> <!-- y", "<!-- the end --> <!-- y"}};
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(XmlRedaction, ElementsAndTagsOfAllForms) {
  constexpr const char* kPairs[][2] = {
      {"<name>pin</name><value>x</value>", "<name>pin</name><value>REDACTED</value>"},
      {"<a><key>pin</key>\n<b/><b>x</b></a>", "<a><key>pin</key>\n<b/><b>x</b></a>"},
      {"<pin><a>x</a></pin>", "<pin>REDACTED</pin>"},
      {"<pin></pin><pin/> <pin>null</pin>", "<pin></pin><pin/> <pin>null</pin>"},
      {"<br><pin>x</pin><p>pin: y</p>", "<br><pin>REDACTED</pin><p>pin: REDACTED</p>"},
      {"<a><br>pin: x</a> <b", "<a><br>pin: REDACTED</a> <b"},
      {"std::vector<int> a; b > c", "std::vector<int> a; b > c"},
      {"<a>pin: x <5</a>", "<a>pin: REDACTED</a>"},
      {"<key>the password is wrong</key><b>x</b>", "<key>the password is wrong</key><b>x</b>"}};
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

}  // namespace
}  // namespace trireme
