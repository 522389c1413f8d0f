// Tests products that the library refuses, and its choice of algorithms, which only the simulated
// device can be made to change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "src/device/cuda_device.h"
#include "src/device/pool.h"
#include "src/device/sim/fault.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"
#include "tests/support/message_of.h"

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
    EXPECT_NEAR(result[i], expected[i], dtype == DType::f32 ? 1e-5 : 0.1);
  }
}

// Kernels take over what the library refuses: the bias, also before GELU.
TEST(Product, DoesWithoutEpilogues) {
  for (const DType dtype : activation_types()) {
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
  try {
    expect_product(72, DType::f32, Epilogue::none);
    ADD_FAILURE() << "the library has no algorithm";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("no algorithm that runs on device 0 for the product 6x72x11"));
  }
}

// The operands of a product whose shape no other test has, on a device and not initialized.
class Choices : public ::testing::Test {
 protected:
  Matmul product(std::int64_t n, std::int64_t offset = 0) {
    const View all = memory_.view(DType::bf16);
    return {.m = 24,
            .n = n,
            .k = 40,
            .a = all.slice(0, 24 * 40),
            .b = all.slice(24 * 40 + offset, 40 * n),
            .c = View{memory_.data(), 24 * n, DType::f32, all.device}};
  }
  Pool pool_{{DeviceKind::cuda, 0}};
  Buffer memory_ = pool_.allocate(1 << 20);
};

std::string only_algorithm(const ProductTable& table) {
  EXPECT_EQ(table.size(), 1U);
  return table.begin()->second;
}

TEST_F(Choices, DescribeProductsAndAlgorithms) {
  const ProductTable table = choose_cuda_products(0, {product(80), product(80), product(80, 3)});
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.begin()->first, "24x80x40 BF16 to F32");
  EXPECT_EQ(table.rbegin()->first, "24x80x40 BF16 to F32, B aligned to 2");
  EXPECT_EQ(table.begin()->second,
            "algorithm 1, tile 20, stages 0, split-K 1, reduction 0, swizzle 0, custom 0, inner "
            "shape 0, cluster 0");
  // Sixteen bytes further on, nothing has changed.
  EXPECT_EQ(choose_cuda_products(0, {product(80, 8)}).begin()->first, "24x80x40 BF16 to F32");
}

TEST_F(Choices, ShowWhichPartsTheLibraryDoesNotOffer) {
  Matmul with_bias = product(88);
  with_bias.bias = memory_.view(DType::bf16).slice(0, 88);
  const HeuristicFaults faults(1);
  const ProductTable table = choose_cuda_products(0, {with_bias});
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.at("24x88x40 BF16 to F32, bias"), "not offered");
  EXPECT_THAT(table.at("24x88x40 BF16 to F32"), ::testing::HasSubstr("tile 20"));
}

TEST_F(Choices, AreMadeOnce) {
  sim::set_faults("cublasLtMatmulAlgoGetHeuristic:1:other");
  const std::string first = only_algorithm(choose_cuda_products(0, {product(96)}));
  EXPECT_THAT(first, ::testing::HasSubstr("tile 18"));
  EXPECT_EQ(only_algorithm(choose_cuda_products(0, {product(96)})), first);
  EXPECT_THAT(only_algorithm(choose_cuda_products(0, {product(104)})),
              ::testing::HasSubstr("tile 20"));
  sim::set_faults("");
}

// Closing gives the memory of the checks back, and permits no further choices.
TEST_F(Choices, EndBeforeTheFirstStep) {
  const auto free_bytes = [] { return cuda::device_facts(0).free_bytes; };
  Stream stream = test_stream(1);
  (void)choose_cuda_products(0, {product(112)});
  cuda_kernels().matmul(stream, product(112));
  stream.synchronize();
  close_cuda_choices(0);
  const std::int64_t before = free_bytes();
  (void)choose_cuda_products(0, {product(120)});
  EXPECT_LT(free_bytes(), before);
  EXPECT_LE(before - free_bytes(), cuda_choice_bytes(120, 2));
  close_cuda_choices(0);
  EXPECT_EQ(free_bytes(), before);

  cuda_kernels().matmul(stream, product(120));
  EXPECT_THAT(message_of<InternalError>([&] { cuda_kernels().matmul(stream, product(128)); }),
              ::testing::HasSubstr("before the first step for the product 24x128x40 BF16 to F32"));
  stream.synchronize();
  (void)choose_cuda_products(0, {product(128)});
  cuda_kernels().matmul(stream, product(128));
  stream.synchronize();
}

}  // namespace
}  // namespace trireme::testing
