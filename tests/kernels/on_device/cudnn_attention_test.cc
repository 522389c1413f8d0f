// Attention by cuDNN against the reference: on the simulated device by a stand-in for the library,
// and with a GPU by the library itself, if it is installed.
#include <functional>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/on_device/packed_call.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

void expect_all_near(const Array& found, const Array& expected, double tolerance) {
  for (std::int64_t i = 0; i < found.count(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance) << i;
  }
}

const Kernels& by_cudnn() { return mirrored_kernels(Placement::aligned, CudaAttention::cudnn); }

// Skips a test where a real GPU's machine lacks cuDNN.
void skip_without_cudnn() {
  if (cuda::back_end() != cuda::BackEnd::real) {
    return;
  }
  try {
    (void)cuda_kernels(CudaAttention::cudnn);
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.what();
  }
}

using Change = std::function<void(AttentionForward&)>;

class CudnnAttention : public ::testing::Test {
 protected:
  void SetUp() override { skip_without_cudnn(); }
};
class CudnnAttentionOf : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { skip_without_cudnn(); }
};

TEST_P(CudnnAttentionOf, AgreesWithTheReference) {
  bool differs_from_own = false;
  for (const CallShape& shape : {CallShape{2, 40, 2, 2, 16}, CallShape{1, 70, 4, 2, 32},
                                 CallShape{2, 9, 3, 1, 64}, CallShape{1, 1, 1, 1, 128}}) {
    PackedCall found(shape, GetParam());
    PackedCall expected(shape, GetParam());
    Stream stream = test_stream(1);
    found.run(by_cudnn(), stream);
    expected.run(kernels_named("reference"), stream);
    expect_all_near(found.out, expected.out, 0.02);
    expect_all_near(found.lse, expected.lse, 1e-3);
    expect_all_near(found.gradient, expected.gradient, 0.06);
    PackedCall again(shape, GetParam());
    again.run(by_cudnn(), stream);
    EXPECT_TRUE(again.out.same_bits(found.out) && again.gradient.same_bits(found.gradient));
    // The bits are those of the graphs, not of the program's own kernels.
    PackedCall own(shape, GetParam());
    own.run(mirrored_kernels(Placement::aligned), stream);
    differs_from_own = differs_from_own || !own.gradient.same_bits(found.gradient);
  }
  EXPECT_TRUE(differs_from_own);
}

INSTANTIATE_TEST_SUITE_P(DTypes, CudnnAttentionOf, ::testing::Values(DType::bf16, DType::f16),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

// An evaluation does not keep the log-sum-exp.
TEST_F(CudnnAttention, NeedsNoPlaceForTheLogSumExp) {
  PackedCall kept({1, 20, 2, 2, 16});
  PackedCall dropped({1, 20, 2, 2, 16});
  Stream stream = test_stream(1);
  by_cudnn().attention_forward(stream, kept.forward());
  AttentionForward call = dropped.forward();
  call.lse = {};
  by_cudnn().attention_forward(stream, call);
  EXPECT_TRUE(dropped.out.same_bits(kept.out));
}

// What cuDNN's graphs do not cover has the bits of the program's own kernels.
TEST_F(CudnnAttention, LeavesOtherCallsToOwnKernels) {
  const auto out = [&](const Kernels& kernels, const Change& change) {
    PackedCall call({1, 20, 2, 2, 16});
    AttentionForward p = call.forward();
    change(p);
    Stream stream = test_stream(1);
    kernels.attention_forward(stream, p);
    return call.out;
  };
  const auto dropout = [](AttentionForward& p) { p.dropout.probability = 0.25F; };
  const auto misaligned = [](AttentionForward& p) { p.k = p.k.slice(1, p.k.count - 1); };
  for (const Change& change : std::vector<Change>{dropout, misaligned}) {
    const Array expected = out(mirrored_kernels(Placement::aligned), change);
    EXPECT_TRUE(out(by_cudnn(), change).same_bits(expected));
  }
}

}  // namespace
}  // namespace trireme::testing
