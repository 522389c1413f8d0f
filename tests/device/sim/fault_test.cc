// Tests injected errors of the runtime's functions.
#include "src/device/sim/fault.h"

#include "src/device/sim/environment.h"
#include "tests/device/sim/device_array.h"
#include "tests/support/environment_variables.h"

namespace trireme {
namespace {

__global__ void add_one(float* x) { *x += 1; }

struct FaultScope {
  explicit FaultScope(const std::string& faults) { sim::set_faults(faults); }
  ~FaultScope() { sim::set_faults(""); }
};

TEST(SimFault, TheCallThatIsNamedFailsOnce) {
  const FaultScope faults("cudaMalloc:2:cudaErrorMemoryAllocation,cudaMemsetAsync:1:1");
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_EQ(cudaMalloc(&first, 64), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 64), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&second, 64), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(first, 0, 64), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(first, 0, 64), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaFree(first);
  cudaFree(second);
}

TEST(SimFault, KnowsTheNamesOfErrors) {
  EXPECT_EQ(sim::error_value("cudaErrorECCUncorrectable"), cudaErrorECCUncorrectable);
  EXPECT_EQ(sim::error_value("ncclRemoteError"), 6);
  EXPECT_EQ(sim::error_value("CUBLAS_STATUS_NOT_SUPPORTED"), 15);
  EXPECT_EQ(sim::error_value("17"), 17);
  EXPECT_EQ(sim::error_value("cudaErrorOfMine"), std::nullopt);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

TEST(SimFault, RanksFailAtTheOperationThatIsNamed) {
  const FaultScope faults("1:0:hang,0:3:error,0@2:4:hang,0@1/1:5:hang,0@1/0:6:hang");
  EXPECT_EQ(sim::rank_fault(0, 4), sim::RankFault::none);  // of a later attempt
  EXPECT_EQ(sim::rank_fault(0, 5), sim::RankFault::none);  // of another rank
  EXPECT_EQ(sim::rank_fault(0, 6), sim::RankFault::hang);
  EXPECT_EQ(sim::rank_fault(1, 0), sim::RankFault::hang);
  EXPECT_EQ(sim::rank_fault(1, 1), sim::RankFault::none);
  EXPECT_EQ(sim::rank_fault(0, 3), sim::RankFault::error);
}

// The scenarios below leave a failed device, so each runs in a process of its own, which returns 7
// when all went as it should.
[[noreturn]] void end(bool right) { std::exit(right ? 7 : 1); }

void fail_at_once() {
  sim::set_faults("cudaMemcpyAsync:1:cudaErrorECCUncorrectable");
  DeviceArray<float> x(1);
  PinnedArray<float> host(std::vector<float>{1});
  const bool fails =
      cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyDefault) == cudaErrorECCUncorrectable;
  end(fails && cudaStreamSynchronize(nullptr) == cudaErrorECCUncorrectable &&
      cudaGetLastError() == cudaErrorECCUncorrectable &&
      cudaGetLastError() == cudaErrorECCUncorrectable);
}

void fail_later() {
  sim::set_faults("cudaLaunchKernelEx:1:cudaErrorIllegalAddress:later");
  DeviceArray<float> x(std::vector<float>{0});
  cuda::launch(cuda::kernel_of<add_one>, 1, 1, 0, nullptr, x.data());
  end(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
}

TEST(SimFaultDeathTest, ADeviceDoesNotSurviveSomeErrors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fail_at_once(), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(fail_later(), testing::ExitedWithCode(7), "");
}

// The simulator reads the environment when a process starts: here, that of a death test.
TEST(SimFaultDeathTest, ReadsTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [] {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, 2 << 20);
    int devices = 0;
    cudaGetDeviceCount(&devices);
    std::exit(error == cudaSuccess ? 10 + devices : error);
  };
  const auto expect = [&](const char* variable, const char* value, int code, const char* words) {
    EnvironmentVariables with;
    with.set(variable, value);
    EXPECT_EXIT(use(), testing::ExitedWithCode(code), words) << variable << "=" << value;
  };
  expect("TRIREME_SIM_FAULT", "cudaMalloc:1:cudaErrorNotReady", 600 & 0xFF, "");
  expect("TRIREME_SIM_FAULT", "a\x1b[31m", 2, "'a.x1b.31m'");
  expect("TRIREME_SIM_LINKS", "b\n", 2, "'b.n'");
  expect("TRIREME_SIM_LEAKS", "\x1b", 2, "=.x1b: expected a whole number from 0 to 1");
  expect("TRIREME_SIM_MEMORY", "1048576", 2, "");
  expect("TRIREME_SIM_DEVICES", "3", 13, "");
  expect("TRIREME_SIM_DEVICES", "0", 100, "");
  expect("TRIREME_SIM_SEED", "12x", 2, "whole number");
  expect("TRIREME_SIM_FAULT", "cudaMalloc", 2, "cannot read");
}

TEST(SimFaultDeathTest, ReportsLeaksWhereAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EnvironmentVariables with;
  with.set("TRIREME_SIM_LEAKS", "1");
  EXPECT_EXIT(
      {
        void* memory = nullptr;
        cudaMalloc(&memory, 64);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "1 allocations were never freed");
}

}  // namespace
}  // namespace trireme
