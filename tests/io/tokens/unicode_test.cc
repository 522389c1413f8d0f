#include "io/tokens/unicode.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Unicode, RulesForAsciiAreThoseOfTheTables) {
  for (char32_t code = 0; code < 0x80; ++code) {
    EXPECT_EQ(character_class(code), class_in_tables(code)) << static_cast<int>(code);
  }
}

}  // namespace
}  // namespace trireme
