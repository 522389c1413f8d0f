#include "src/device/pool.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(Pool, TheSecondStepTakesNothingFromTheSystem) {
  Pool pool(Device::cpu());
  const auto step = [&pool] {
    std::vector<Buffer> buffers;
    for (const std::int64_t bytes : {100, 5000, 70000, 3 << 20, 100, 5000}) {
      buffers.push_back(pool.allocate(bytes));
      std::memset(buffers.back().data(), 1, static_cast<std::size_t>(bytes));
    }
  };
  step();
  const std::int64_t reserved = pool.reserved_bytes();
  EXPECT_GE(reserved, 2 * 100 + 2 * 5000 + 70000 + (3 << 20));
  for (int i = 0; i < 10; ++i) {
    step();
  }
  EXPECT_EQ(pool.reserved_bytes(), reserved);
  EXPECT_EQ(pool.peak_bytes(), reserved);
}

TEST(Pool, LendsLargerBlocksOnlyWhileItIsAskedTo) {
  Pool pool(Device::cpu());
  const auto step = [&pool](std::int64_t scale) {
    const Buffer first = pool.allocate(scale * 3000);
    const Buffer second = pool.allocate(scale * 100000);
    const Buffer third = pool.allocate(scale * 3000);
    std::memset(third.data(), 1, static_cast<std::size_t>(third.bytes()));
    EXPECT_EQ(third.bytes(), scale * 3000);
    EXPECT_NE(first.data(), third.data());
  };
  step(4);
  const std::int64_t reserved = pool.reserved_bytes();
  {
    const Pool::Lending lending(pool, true);
    step(3);
    step(1);
  }
  EXPECT_EQ(pool.reserved_bytes(), reserved);
  step(4);
  EXPECT_EQ(pool.reserved_bytes(), reserved) << "what was lent keeps its size";
  const Pool::Lending none(pool, false);
  step(3);
  EXPECT_GT(pool.reserved_bytes(), reserved);
}

TEST(Pool, WhatIsHeldIsNotHandedOutAgain) {
  Pool pool(Device::cpu());
  std::set<void*> seen;
  std::vector<Buffer> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(pool.allocate(1000));
    EXPECT_TRUE(seen.insert(held.back().data()).second);
  }
  void* freed = held[40].data();
  held[40] = Buffer();
  EXPECT_EQ(pool.allocate(1000).data(), freed);
}

TEST(Pool, RoundingLosesLittleAndAligns) {
  Pool pool(Device::cpu());
  std::int64_t before = 0;
  for (const std::int64_t bytes : {0LL, 1LL, 63LL, 64LL, 65LL, 1000LL, 4097LL, 1LL << 20,
                                   (1LL << 20) + 1, (5LL << 20) + 7, 33LL << 20}) {
    const Buffer buffer = pool.allocate(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    const std::int64_t taken = pool.reserved_bytes() - before;
    EXPECT_GE(taken, bytes == 64 || bytes == 63 || bytes == 1 ? 0 : bytes);
    EXPECT_LE(taken, bytes + bytes / 8 + 64);
    before = pool.reserved_bytes();
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    EXPECT_EQ(address % 64, 0U);
    if (bytes >= 2 << 20) {
      EXPECT_EQ(address % (2 << 20), 0U);
    }
  }
}

TEST(Pool, PeakIsTheLargestSumHeldAtOnce) {
  Pool pool(Device::cpu());
  {
    const Buffer a = pool.allocate(1 << 16);
    const Buffer b = pool.allocate(1 << 16);
  }
  const Buffer c = pool.allocate(1 << 16);
  EXPECT_EQ(pool.peak_bytes(), 2 << 16);
}

TEST(Buffer, MovesItsMemoryOnce) {
  Pool pool(Device::cpu());
  Buffer a = pool.allocate(256);
  void* data = a.data();
  Buffer b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.bytes(), 0);
  EXPECT_EQ(b.data(), data);
  auto& same = b;
  b = std::move(same);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.view(DType::f32).count, 64);
  b = pool.allocate(256);
  // The first block can be used again, but only once.
  EXPECT_EQ(pool.allocate(256).data(), data);
  const Buffer c = pool.allocate(256);
  const Buffer d = pool.allocate(256);
  EXPECT_NE(c.data(), d.data());
}

TEST(Pool, ManyThreadsShareIt) {
  Pool pool(Device::cpu());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::int64_t bytes = 64 + 64 * ((i + t) % 5);
        const Buffer buffer = pool.allocate(bytes);
        auto* words = static_cast<int*>(buffer.data());
        words[0] = t;
        words[bytes / 4 - 1] = i;
        ASSERT_EQ(words[0], t);
        ASSERT_EQ(words[bytes / 4 - 1], i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(pool.reserved_bytes(), 4 * (64 + 128 + 192 + 256 + 320));
}

TEST(Pool, TooMuchIsAnErrorThatSaysWhatToDo) {
  Pool pool(Device::cpu());
  try {
    const Buffer buffer = pool.allocate(std::int64_t{1} << 60);
    FAIL() << "an exbibyte was granted";
  } catch (const ResourceError& e) {
    EXPECT_NE(std::string(e.what()).find("smaller micro-batch"), std::string::npos);
  }
  EXPECT_THROW(Pool(Device{DeviceKind::cuda, 0}), ConfigError);
}

}  // namespace
}  // namespace trireme
