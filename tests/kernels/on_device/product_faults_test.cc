// Products where the library refuses, which only the simulated device can be told to do.
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "src/device/sim/fault.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

// Faults fail the library's heuristic while they live.
struct HeuristicFaults {
  explicit HeuristicFaults(int calls) {
    std::string faults;
    for (int call = 1; call <= calls; ++call) {
      faults += fmt::format("{}cublasLtMatmulAlgoGetHeuristic:{}:CUBLAS_STATUS_NOT_SUPPORTED",
                            call == 1 ? "" : ",", call);
    }
    sim::set_faults(faults);
  }
  ~HeuristicFaults() { sim::set_faults(""); }
  HeuristicFaults(const HeuristicFaults&) = delete;
  HeuristicFaults& operator=(const HeuristicFaults&) = delete;
};

// Compares a product with a bias, whose shape no other test has, with the reference.
void expect_product(std::int64_t n, DType dtype, Epilogue epilogue) {
  constexpr std::int64_t kM = 6;
  constexpr std::int64_t kK = 11;
  const Array a = Array::random(kM * kK, dtype, 1);
  const Array b = Array::random(kK * n, dtype, 2);
  const Array bias = Array::random(n, dtype, 3);
  const auto product = [&](const Kernels& kernels) {
    Stream stream = test_stream(1);
    Array aux(kM * n, dtype);
    Array c(kM * n, dtype);
    kernels.matmul(stream, {.m = kM,
                            .n = n,
                            .k = kK,
                            .a = a,
                            .b = b,
                            .c = c,
                            .bias = bias,
                            .aux = epilogue == Epilogue::none ? View{} : aux.view(),
                            .epilogue = epilogue});
    return c;
  };
  const Array expected = product(kernels_named("reference"));
  const Array result = product(mirrored_kernels(Placement::aligned));
  for (std::int64_t i = 0; i < kM * n; ++i) {
    EXPECT_NEAR(result[i], expected[i], dtype == DType::bf16 ? 0.1 : 1e-5);
  }
}

// Kernels do what the library refuses: the bias, also before GELU.
TEST(Product, DoesWithoutEpilogues) {
  for (const DType dtype : kActivations) {
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::gelu}) {
      const HeuristicFaults faults(1);
      expect_product(epilogue == Epilogue::none ? 40 : 48, dtype, epilogue);
    }
  }
}

// The first product of a kind is the check of its algorithm, and here the only algorithm is wrong.
TEST(Product, RefusesAlgorithmsWithWrongSums) {
  sim::set_faults("cublasLtMatmul:1:wrong");
  EXPECT_THROW(expect_product(56, DType::f32, Epilogue::none), DeviceError);
  sim::set_faults("");
}

TEST(Product, FailsWithoutAnyAlgorithm) {
  const HeuristicFaults faults(2);
  EXPECT_THROW(expect_product(72, DType::f32, Epilogue::none), InternalError);
}

}  // namespace
}  // namespace trireme::testing
