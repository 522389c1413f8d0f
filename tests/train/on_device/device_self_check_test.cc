#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/memory_source.h"
#include "src/device/sim/fault.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "src/train/numerics/bench.h"
#include "src/train/numerics/self_check.h"
#include "tests/support/at_faults.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Device kDevice{DeviceKind::cuda, 1};

KernelShapes shapes_of(DType dtype, bool llama) {
  KernelShapes s;
  s.dtype = dtype;
  s.batch = 1;
  s.time = 24;
  s.channels = 32;
  s.heads = 4;
  s.kv_heads = llama ? 2 : 4;
  s.head_dim = 8;
  s.ffn = 48;
  s.vocabulary = 101;
  s.llama = llama;
  s.shares_vocabulary = llama;
  s.dropout = llama ? 0 : 0.1F;
  s.sgd = llama;
  s.averages = true;
  s.keeps_zeros = true;
  return s;
}

TEST(DeviceSelfCheck, FindsNothing) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool llama : {false, true}) {
      DeviceContext context(kDevice, 1);
      EXPECT_NO_THROW(check_kernels(context, shapes_of(dtype, llama)))
          << dtype_name(dtype) << (llama ? " llama" : " gpt2");
    }
  }
}

TEST(DeviceSelfCheck, CoversAttentionByCudnn) {
  KernelShapes shapes = shapes_of(DType::bf16, true);
  shapes.by_cudnn = true;
  DeviceContext context(kDevice, cuda_kernels(CudaAttention::cudnn), 1, memory_of(kDevice));
  EXPECT_NO_THROW(check_kernels(context, shapes));
  // An execution that fails shows that cuDNN is what the check asks.
  sim::set_faults("cudnnBackendExecute:1:1");
  EXPECT_THAT(message_of<DeviceError>([&] { check_kernels(context, shapes); }),
              HasSubstr("attention"));
  sim::set_faults("");
}

// Each of the three products of four layers also compares the largest magnitudes of its operands.
TEST(DeviceSelfCheck, CoversProductsInFp8) {
  for (const bool llama : {false, true}) {
    KernelShapes shapes = shapes_of(DType::bf16, llama);
    shapes.batch = 2;
    std::vector<int> comparisons;
    for (const bool fp8 : {false, true}) {
      shapes.fp8 = fp8;
      int passed = 0;
      const AtFaults counting([&](std::string_view site) { passed += site == "start.kernel"; });
      DeviceContext context(kDevice, 1);
      EXPECT_NO_THROW(check_kernels(context, shapes)) << (llama ? "llama" : "gpt2");
      comparisons.push_back(passed);
    }
    EXPECT_EQ(comparisons[1], comparisons[0] + 4 * 3 * 2);
  }
}

TEST(DeviceSelfCheck, NamesTheDevice) {
  DeviceContext context(kDevice, 1);
  const KernelShapes shapes = shapes_of(DType::f32, false);
  CheckBench bench(context, shapes);
  const Tensor found = bench.numbers(8, DType::f32, 1);
  const Tensor expected = bench.numbers(8, DType::f32, 2);
  EXPECT_THAT(message_of<DeviceError>([&] { bench.compare("add", found.view(), expected.view()); }),
              AllOf(HasSubstr("add of the cuda kernels computes wrong numbers on CUDA device 1 of"),
                    HasSubstr("8 of 8 F32 results differ")));
}

// A kernel that writes beyond its view is found by the bytes around it, one that changes its
// arguments by their copies on the host.
TEST(Mirror, FindsWhatAKernelMustNotWrite) {
  Stream stream(kDevice, 1, cuda::make_queue(kDevice.index));
  std::vector<float> in(5, 1);
  std::vector<float> out(5, 2);
  ConstView from{in.data(), 5, DType::f32};
  View to{out.data(), 5, DType::f32};
  const auto written_by = [&](auto kernel) {
    from = {in.data(), 5, DType::f32};
    to = {out.data(), 5, DType::f32};
    Mirror mirror(stream, Placement::as_on_host);
    mirror.add(from);
    mirror.add(to);
    mirror.upload();
    kernel();
    mirror.download();
  };
  written_by([&] { stream.copy(to, from); });
  EXPECT_EQ(out, in);
  const auto clear = [&](const void* at, std::int64_t count) {
    stream.clear({const_cast<void*>(at), count, DType::f32, kDevice});
  };
  EXPECT_THAT(message_of<DeviceError>([&] { written_by([&] { clear(to.data, 6); }); }),
              HasSubstr("outside its views"));
  EXPECT_THAT(message_of<DeviceError>(
                  [&] { written_by([&] { clear(static_cast<float*>(to.data) - 1, 1); }); }),
              HasSubstr("outside its views"));
  EXPECT_THAT(message_of<DeviceError>([&] { written_by([&] { clear(from.data, 1); }); }),
              HasSubstr("only read"));
}

}  // namespace
}  // namespace trireme
