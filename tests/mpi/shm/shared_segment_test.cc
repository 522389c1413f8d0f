#include "mpi/shm/shared_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSegmentReserve = std::int64_t{8} << 20;

std::string refusal_of(const SegmentAddress& address) {
  try {
    (void)SharedSegment::open(address);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// Memory that the owner takes later is there for a peer that has mapped the segment before.
TEST(SharedSegment, PeersSeeWhatTheOwnerGrows) {
  const auto own = SharedSegment::make(kSegmentReserve);
  const auto peer = SharedSegment::open(SegmentAddress::parse(own->address().text()));
  ASSERT_TRUE(own->grow(kSegmentReserve));
  ASSERT_TRUE(own->populate(4096, 4096));
  *own->at(5000) = std::byte{42};
  EXPECT_EQ(*peer->at(5000), std::byte{42});
  EXPECT_NE(own->at(0), peer->at(0));
  EXPECT_FALSE(own->grow(kSegmentReserve + 1));
}

TEST(SharedSegment, KnowsItsOwnBytes) {
  const auto own = SharedSegment::make(kSegmentReserve);
  EXPECT_TRUE(own->contains(own->at(0), kSegmentReserve));
  EXPECT_FALSE(own->contains(own->at(1), kSegmentReserve));
  EXPECT_FALSE(own->contains(own->at(0) - 1, 1));
  EXPECT_FALSE(own->contains(&kSegmentReserve, 8));
  EXPECT_EQ(own->offset_of(own->at(77)), 77);
}

TEST(SharedSegment, RefusesWhatIsNotThePeers) {
  const auto own = SharedSegment::make(kSegmentReserve);
  SegmentAddress address = own->address();
  address.nonce += 1;
  EXPECT_THAT(refusal_of(address), HasSubstr("is not the peer's segment"));
  address = own->address();
  address.fd = 0;
  EXPECT_NE(refusal_of(address), "nothing was refused");
  address.fd = 9999;
  EXPECT_THAT(refusal_of(address), HasSubstr("No such file"));
  address.pid = 1 << 30;
  EXPECT_THAT(refusal_of(address), HasSubstr("comm.backend=mpi"));
}

TEST(SharedSegment, RefusesImpossibleReserves) {
  EXPECT_THROW((void)SharedSegment::make(std::int64_t{1} << 60), ConfigError);
}

TEST(SegmentAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "1", "1 2 3", "x 3 4096 5", "1 2 3 4", "-1 3 8192 5", "1 -3 8192 5",
                           "1 3 -8192 5", "1 3 8192 5 6", "1 3 99999999999999999999 5"}) {
    EXPECT_THROW((void)SegmentAddress::parse(text), CommError) << text;
  }
  EXPECT_EQ(SegmentAddress::parse("12 3 8192 18446744073709551615").nonce, ~std::uint64_t{0});
}

TEST(SegmentTable, FindsTheVeryObject) {
  SegmentTable table;
  auto own = SharedSegment::make(kSegmentReserve);
  const SegmentAddress address = own->address();
  table.add(own);
  EXPECT_EQ(table.find(address), own);
  own.reset();
  EXPECT_EQ(table.find(address), nullptr);
}

}  // namespace
}  // namespace trireme
