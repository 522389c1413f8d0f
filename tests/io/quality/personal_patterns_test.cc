#include "io/quality/personal_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;

TEST(PersonalPatterns, AreCounted) {
  EXPECT_THAT(count_personal_patterns(
                  "Write to a.b+c@mail.example.com, or <x@y.org>. Call +44 (0)20 7946 0958 or "
                  "+971501234567; host 192.168.0.1, and [10.0.0.255]. Card 4111 1111 1111 1111, "
                  "5500-0000-0000-0004. IBAN GB82 WEST 1234 5698 7654 32, DE89370400440532013000."),
              ElementsAre(2, 2, 2, 2, 2));
}

TEST(PersonalPatterns, NeedTheirForm) {
  for (const char* text : {"",
                           "@",
                           "a@",
                           "@b.org",
                           "a@b",
                           "a@b.c",
                           "a@.org",
                           "a.@b.org",
                           "a@b..org",
                           "a@b.o2",
                           "decorator @property",
                           "+",
                           "+1234567",
                           "+1234567890123456",
                           "a+12345678",
                           "+ 12345678",
                           "+1,234,567,890",
                           "1.2.3",
                           "256.1.1.1",
                           "1.2.3.4.5",
                           "1.2.3.4a",
                           "v1.2.3.4",
                           "0001.2.3.4",
                           "4111 1111 1111 1112",
                           "4111111111111111a",
                           "1111111111111117",
                           "4111  1111 1111 1111",
                           "411111111111",
                           "GB82 WEST 1234 5698 7654 33",
                           "gb82west12345698765432",
                           "GB82  WEST 1234 5698 7654 32",
                           "GB82WEST1",
                           "1e+12345678"}) {
    EXPECT_THAT(count_personal_patterns(text), ElementsAre(0, 0, 0, 0, 0)) << text;
  }
}

TEST(PersonalPatterns, LongTextsTakeLinearTime) {
  for (const char* part : {"@", "+", "1.", "4 ", "A", "a@b.", "+1-", "GB82 "}) {
    std::string text;
    while (text.size() < 2'000'000) {
      text += part;
    }
    (void)count_personal_patterns(text);
  }
}

}  // namespace
}  // namespace trireme
