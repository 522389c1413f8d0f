#include "benchmarks/table_buffers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Memory of which there is only so much, which counts what was taken from it.
class ScarceMemory : public MemorySource {
 public:
  explicit ScarceMemory(std::int64_t most) : most_(most) {}

  void* take(std::int64_t bytes) override {
    if (taken_ + bytes > most_) {
      throw ResourceError("no memory is left");
    }
    taken_ += bytes;
    peak_ = std::max(peak_, taken_);
    void* const data = host_memory().take(bytes);
    std::memset(data, 0x5A, static_cast<std::size_t>(bytes));
    return data;
  }
  void give_back(void* data, std::int64_t bytes) noexcept override {
    taken_ -= bytes;
    host_memory().give_back(data, bytes);
  }
  std::int64_t taken() const { return taken_; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t most_;
  std::int64_t taken_ = 0;
  std::int64_t peak_ = 0;
};

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void set_to_zero(const View& view) {
  std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
}

bool is_zero(const Buffer& buffer) {
  const auto* const bytes = static_cast<const char*>(buffer.data());
  return std::all_of(bytes, bytes + buffer.bytes(), [](char byte) { return byte == 0; });
}

TEST(TableBuffers, GrowWithTheRows) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    ScarceMemory memory(64 * kMiB);
    TableBuffers buffers(comm, {.device = Device::cpu(), .local_ranks = 2, .clear = set_to_zero});
    EXPECT_EQ(buffers.add(memory), 0U);
    EXPECT_EQ(memory.peak(), 0);
    EXPECT_TRUE(buffers.holds("small", 1));
    EXPECT_LT(memory.taken(), 1024);
    EXPECT_TRUE(buffers.holds("large", kMiB));
    EXPECT_EQ(memory.taken(), 2 * kMiB) << "the smaller arrays are gone";
    const void* const data = buffers.first().data();
    EXPECT_TRUE(buffers.holds("half", kMiB / 2));
    EXPECT_EQ(buffers.first().data(), data);
    EXPECT_EQ(buffers.bytes(), kMiB);
    EXPECT_TRUE(is_zero(buffers.first()) && is_zero(buffers.second()));
    EXPECT_TRUE(buffers.left_out().empty());
    EXPECT_EQ(buffers.text(), "");
  });
}

// A rank that has the memory gives it back, and the next table begins again.
TEST(TableBuffers, AllRanksLeaveOutWhatOneCannotHold) {
  ThreadWorld world(3);
  world.run([](Communicator& comm) {
    ScarceMemory memory(comm.rank() == 1 ? 4 * kMiB : 64 * kMiB);
    TableBuffers buffers(comm, {.device = Device::cpu(), .local_ranks = 3, .clear = set_to_zero});
    (void)buffers.add(memory);
    EXPECT_TRUE(buffers.holds("1 MiB", kMiB));
    EXPECT_FALSE(buffers.holds("8 MiB", 8 * kMiB));
    EXPECT_EQ(memory.taken(), 0);
    EXPECT_FALSE(buffers.holds("16 MiB", 16 * kMiB));
    EXPECT_EQ(buffers.text(), "# left out, as the memory is too small: 8 MiB, 16 MiB\n");
    EXPECT_TRUE(buffers.holds("1 MiB", kMiB));
    EXPECT_EQ(buffers.text(), "") << "each table names its own";
    EXPECT_THAT(buffers.left_out(), ElementsAre("8 MiB", "16 MiB"));
  });
}

TEST(TableBuffers, EachBackendHasAPair) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    ScarceMemory one(64 * kMiB);
    ScarceMemory other(64 * kMiB);
    TableBuffers buffers(comm, {.device = Device::cpu(), .local_ranks = 2, .clear = set_to_zero});
    EXPECT_EQ(buffers.add(one), 0U);
    EXPECT_EQ(buffers.add(other), 1U);
    EXPECT_TRUE(buffers.holds("1 MiB", kMiB));
    EXPECT_EQ(one.taken(), 2 * kMiB);
    EXPECT_EQ(other.taken(), 2 * kMiB);
    EXPECT_NE(buffers.first(0).data(), buffers.first(1).data());
  });
}

// Host memory would be granted without a page behind it: it is never asked for.
TEST(TableBuffers, MemoryThatTheHostDoesNotHaveIsNotTaken) {
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 50;
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    ScarceMemory memory(4 * kTooMuch);
    TableBuffers buffers(comm, {.device = Device::cpu(), .local_ranks = 2, .clear = set_to_zero});
    (void)buffers.add(memory);
    EXPECT_TRUE(buffers.holds("1 MiB", kMiB));
    EXPECT_FALSE(buffers.holds("1 PiB", kTooMuch));
    EXPECT_EQ(memory.peak(), 2 * kMiB);
    EXPECT_TRUE(buffers.holds("2 MiB", 2 * kMiB)) << "what fits is still measured";
  });
}

TEST(TableBuffers, TheFirstRowIsNotLeftOut) {
  ThreadWorld world(2);
  world.run([](Communicator& comm) {
    ScarceMemory memory(comm.rank() == 0 ? 0 : kMiB);
    TableBuffers buffers(comm, {.device = Device::cpu(), .local_ranks = 2, .clear = set_to_zero});
    (void)buffers.add(memory);
    EXPECT_THAT(message_of<ResourceError>([&] { (void)buffers.holds("4 KiB", 4096); }),
                HasSubstr(comm.rank() == 0 ? "4 KiB: the memory is too small: no memory is left"
                                           : "another rank has less than it needs"));
  });
}

}  // namespace
}  // namespace trireme
