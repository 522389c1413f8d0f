// Tests how the environment, the device and the processor determine the kernel table.
#include "src/compute/kernel_choice.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/kernels/cpu/product.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Sets TRIREME_KERNELS for one test.
class KernelChoice : public ::testing::Test {
 protected:
  ~KernelChoice() override { ::unsetenv("TRIREME_KERNELS"); }
  static void ask_for(const char* word) { ::setenv("TRIREME_KERNELS", word, 1); }
};

// Each choice runs in a process of its own, because it also limits oneDNN's instructions for good.
TEST_F(KernelChoice, TheEnvironmentNamesATable) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* name : {"reference", "baseline"}) {
    ask_for(name);
    const auto choose = [&] {
      const Kernels& chosen = kernels_for(Device::cpu());
      std::_Exit(chosen.name == name && &chosen == &kernels_named(name) ? 0 : 1);
    };
    EXPECT_EXIT(choose(), ::testing::ExitedWithCode(0), "") << name;
  }
}

TEST_F(KernelChoice, ALesserTableLimitsTheProductsToo) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  ask_for("baseline");
  const auto choose = [] {
    kernels_for(Device::cpu());
    std::_Exit(cpu::has_product(DType::bf16) ? 1 : 0);
  };
  EXPECT_EXIT(choose(), ::testing::ExitedWithCode(0), "");
}

TEST_F(KernelChoice, WithoutAWordTheBestTableIsTaken) {
  ::unsetenv("TRIREME_KERNELS");
  const std::string_view best = kernels_for(Device::cpu()).name;
  ask_for("");
  EXPECT_EQ(kernels_for(Device::cpu()).name, best);
  EXPECT_NE(best, "reference");
  if (__builtin_cpu_supports("avx512f") != 0) {
    EXPECT_EQ(best, "avx512");
  }
}

TEST_F(KernelChoice, AnUnknownWordIsAConfigErrorThatNamesTheAllowedOnes) {
  for (const char* word : {"avx", "AVX2", "fastest", "avx2 "}) {
    ask_for(word);
    EXPECT_THAT(message_of<ConfigError>([] { kernels_for(Device::cpu()); }),
                AllOf(HasSubstr(word), HasSubstr("TRIREME_KERNELS"), HasSubstr("reference"),
                      HasSubstr("baseline"), HasSubstr("avx2"), HasSubstr("avx512")));
  }
}

TEST_F(KernelChoice, AnUnknownWordCannotForgeLines) {
  ask_for("x\ntrireme: OK");
  EXPECT_THAT(message_of<ConfigError>([] { kernels_for(Device::cpu()); }),
              HasSubstr("'x\\ntrireme: OK'"));
}

TEST_F(KernelChoice, ATableThatTheProcessorLacksIsAConfigError) {
  if (__builtin_cpu_supports("avx512f") != 0) {
    GTEST_SKIP() << "needs a processor without AVX-512";
  }
  EXPECT_THAT(message_of<ConfigError>([] { kernels_named("avx512"); }), HasSubstr("lacks"));
}

TEST_F(KernelChoice, ACudaDeviceIsRefusedWithoutCuda) {
  EXPECT_THAT(message_of<ConfigError>([] {
                kernels_for(Device{DeviceKind::cuda, 0});
              }),
              HasSubstr("without CUDA"));
}

TEST_F(KernelChoice, EveryEntryOfEveryTableIsFilled) {
  for (const char* name : {"reference", "baseline", "avx2", "avx512"}) {
    if (name == std::string_view("avx512") && __builtin_cpu_supports("avx512f") == 0) {
      continue;
    }
    if (name == std::string_view("avx2") && __builtin_cpu_supports("avx2") == 0) {
      continue;
    }
    const Kernels& k = kernels_named(name);
    const auto* entries = reinterpret_cast<void* const*>(&k.matmul);
    const auto* last = reinterpret_cast<void* const*>(&k.fill);
    for (; entries <= last; ++entries) {
      EXPECT_NE(*entries, nullptr) << name;
    }
  }
}

}  // namespace
}  // namespace trireme
