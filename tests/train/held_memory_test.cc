#include "src/train/memory/held_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// The pools know it although the error has unwound the buffers.
TEST(HeldMemory, TheErrorSaysWhatThePoolsHeld) {
  DeviceContext context(Device::cpu(), 1);
  const std::string text = message_of<ResourceError>([&] {
    naming_held_memory(context, [&] {
      const Buffer weights = context.state().allocate(8 * kMiB);
      const Buffer copies = context.staging().allocate(2 * kMiB);
      (void)context.activations().allocate(kMiB);
      const Buffer more = context.activations().allocate(1024 * 1024 * 1024 * kMiB);
    });
  });
  EXPECT_THAT(text, StartsWith("out of memory: "));
  EXPECT_THAT(text, HasSubstr("optimizer state 8 MiB (peak in use 8 MiB)"));
  EXPECT_THAT(text, HasSubstr(", activations 1 MiB (peak in use 1 MiB)"));
  EXPECT_THAT(text, HasSubstr("memory of the host for copies 2 MiB"));
}

TEST(HeldMemory, MemoryThatIsNotOfAPoolCountsToo) {
  DeviceContext context(Device::cpu(), 1);
  const std::string text = message_of<ResourceError>(
      [&] { naming_held_memory(context, []() -> int { throw std::bad_alloc(); }); });
  EXPECT_THAT(text, StartsWith(std::string(kOutOfMemory) + "; held by the pools of this rank: "));
}

TEST(HeldMemory, ResultsAndOtherErrorsPass) {
  DeviceContext context(Device::cpu(), 1);
  EXPECT_EQ(naming_held_memory(context, [] { return 3; }), 3);
  const auto fails = [&] {
    naming_held_memory(context, []() -> int { throw DataError("a byte"); });
  };
  EXPECT_EQ(message_of<DataError>(fails), "a byte");
}

}  // namespace
}  // namespace trireme
