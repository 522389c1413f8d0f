// The choice of cuDNN's engines for attention, on the simulated device's stand-in for the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/device/sim/fault.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/on_device/packed_call.h"
#include "tests/kernels/tables.h"
#include "tests/support/message_of.h"

namespace trireme::testing {
namespace {

// Returns a call without addresses, which count as aligned.
AttentionForward without_addresses(const CallShape& shape) {
  AttentionForward p = PackedCall(shape).forward();
  p.q.data = p.k.data = p.v.data = nullptr;
  p.out.data = p.lse.data = nullptr;
  return p;
}

TEST(CudnnAttentionEngines, ChoosesADeterministicEngine) {
  const AttentionForward p = without_addresses({1, 24, 2, 2, 24});
  sim::set_faults("cudnnHeuristic:1:other");
  const ProductTable table = choose_cuda_attention(0, {.forward = {p}, .backward = {p}});
  sim::set_faults("");
  EXPECT_THAT(table,
              ::testing::UnorderedElementsAre(
                  ::testing::Pair("attention 1x24 BF16, 2 heads of 24, 2 for keys",
                                  "cuDNN 9.19.0, engine 2"),
                  ::testing::Pair("attention's gradient 1x24 BF16, 2 heads of 24, 2 for keys",
                                  "cuDNN 9.19.0, engine 6")));
}

TEST(CudnnAttentionEngines, RefusesAnEngineThatIsNotDeterministic) {
  const AttentionForward p = without_addresses({1, 32, 2, 2, 24});
  sim::set_faults("cudnnHeuristic:1:1");
  EXPECT_THAT(message_of<ConfigError>([&] { (void)choose_cuda_attention(0, {.backward = {p}}); }),
              ::testing::AllOf(::testing::HasSubstr("has no deterministic engine"),
                               ::testing::HasSubstr("set train.attention=own")));
  sim::set_faults("");
}

TEST(CudnnAttentionEngines, RefusesAnEngineThatWantsMoreThanWasPredicted) {
  const AttentionForward p = without_addresses({1, 32, 2, 2, 24});
  sim::set_faults("cudnnHeuristic:1:wrong");
  EXPECT_THAT(message_of<ConfigError>([&] { (void)choose_cuda_attention(0, {.forward = {p}}); }),
              ::testing::HasSubstr("more than the 256 B that were planned"));
  sim::set_faults("");
}

TEST(CudnnAttentionEngines, AreNotChosenAfterTheFirstStep) {
  const AttentionForward chosen = without_addresses({1, 24, 2, 2, 24});
  (void)choose_cuda_attention(0, {.forward = {chosen}});
  close_cuda_choices(0);
  const Kernels& table = mirrored_kernels(Placement::aligned, CudaAttention::cudnn);
  Stream stream = test_stream(1);
  PackedCall known({1, 24, 2, 2, 24});
  EXPECT_NO_THROW(table.attention_forward(stream, known.forward()));
  PackedCall other({1, 26, 2, 2, 24});
  EXPECT_THAT(message_of<InternalError>([&] { table.attention_forward(stream, other.forward()); }),
              ::testing::HasSubstr("no engine was chosen before the first step"));
  (void)choose_cuda_attention(0, {.forward = {chosen}});  // permits other tests to choose again
}

}  // namespace
}  // namespace trireme::testing
