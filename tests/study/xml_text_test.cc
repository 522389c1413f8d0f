#include "src/study/xml_text.h"

#include <gtest/gtest.h>

#include "src/study/redaction.h"

namespace trireme {
namespace {

TEST(XmlText, ReplacesNoMoreThanTheTextOfAnElement) {
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

}  // namespace
}  // namespace trireme
