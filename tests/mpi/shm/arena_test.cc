#include "mpi/shm/arena.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

TEST(Arena, GivesAlignedMemoryOfTheSegment) {
  const auto segment = SharedSegment::make(64 * kMiB);
  Arena arena(segment);
  void* const small = arena.take(100);
  void* const large = arena.take(3 * kMiB);
  EXPECT_EQ(address_of(small) % 64, 0U);
  EXPECT_EQ(address_of(large) % (2 * kMiB), 0U);
  EXPECT_TRUE(segment->contains(small, 100));
  EXPECT_TRUE(segment->contains(large, 3 * kMiB));
  std::memset(small, 1, 100);
  std::memset(large, 2, 3 * kMiB);
  EXPECT_EQ(static_cast<const char*>(small)[99], 1);
}

// Freed ranges merge with their neighbours, so that their space is used again, whatever the order.
TEST(Arena, ReusesWhatIsGivenBack) {
  Arena arena(SharedSegment::make(64 * kMiB));
  std::vector<void*> pieces;
  for (int i = 0; i < 8; ++i) {
    pieces.push_back(arena.take(kMiB));
  }
  const std::int64_t grown = arena.grown_bytes();
  for (const int i : {3, 1, 7, 0, 2, 6, 4, 5}) {
    arena.give_back(pieces[static_cast<std::size_t>(i)], kMiB);
  }
  void* const all = arena.take(8 * kMiB - 4 * kMiB);
  EXPECT_EQ(arena.grown_bytes(), grown);
  arena.give_back(all, 4 * kMiB);
}

TEST(Arena, SaysHowMuchWasNeeded) {
  Arena arena(SharedSegment::make(16 * kMiB));
  const auto message_of = [&](std::int64_t bytes) -> std::string {
    try {
      (void)arena.take(bytes);
    } catch (const ResourceError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message_of(std::int64_t{1} << 50), HasSubstr("1 PiB more are needed"));
  EXPECT_THAT(message_of(15 * kMiB), HasSubstr("cannot grow beyond 16 MiB"));
  EXPECT_NE(arena.take(kMiB), nullptr);
}

TEST(Arena, SeesTheHostsMemoryBeforeItTakesIt) {
  const std::int64_t available = available_memory_bytes();
  EXPECT_GT(available, kMiB);
  Arena arena(SharedSegment::make(available * 4));
  EXPECT_THROW((void)arena.take(available * 2), ResourceError);
}

}  // namespace
}  // namespace trireme
