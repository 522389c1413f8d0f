#include "src/base/philox.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// The known answers are Random123's kat_vectors for philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter and key are the hexadecimal digits of pi.
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformFloatsStayBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0F);
  EXPECT_LT(uniform_float(0xffffffff), 1.0F);
  EXPECT_EQ(uniform_float(0x80000000), 0.5F);
}

TEST(Philox, KeysHoldTheWholeSeed) {
  EXPECT_EQ(philox_key(0x123456789abcdef0), (PhiloxKey{0x9abcdef0, 0x12345678}));
}

// The first outputs of SplitMix64 seeded with 1234567, as published with its reference source.
TEST(Mix64, FollowsSplitMix64) {
  EXPECT_EQ(mix64(1234567), 6457827717110365317U);
  EXPECT_EQ(mix64(1234567 + 0x9E3779B97F4A7C15), 3203168211198807973U);
}

}  // namespace
}  // namespace trireme
