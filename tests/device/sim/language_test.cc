// Runs the kernel of language.cu, which uses every word of the language.
#include <cmath>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace cuda {
void launch_every_word(cudaStream_t stream, float* numbers, int* counts, unsigned* bits,
                       void* halves);
}  // namespace cuda
namespace {

TEST(SimLanguage, EveryWordRuns) {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const SeedScope scope(seed);
    DeviceArray<float> numbers(std::vector<float>(128, 1));
    DeviceArray<int> counts(std::vector<int>{0, -5, 7, 5});
    DeviceArray<unsigned> bits(std::vector<unsigned>{4, 7, 1});
    DeviceArray<__nv_bfloat16> halves(std::vector<__nv_bfloat16>(3, __float2bfloat16_rn(1)));
    cuda::launch_every_word(nullptr, numbers.data(), counts.data(), bits.data(), halves.data());
    EXPECT_EQ(counts.read(), (std::vector<int>{2, 0, -1, 6}));  // two blocks
    EXPECT_EQ(bits.read(), (std::vector<unsigned>{5, 3, 1}));
    EXPECT_EQ(__bfloat162float(halves.read()[0]), 2);
    EXPECT_EQ(__bfloat162float(halves.read()[2]), 2);
    EXPECT_EQ(numbers.read()[64], 2.5F);
    EXPECT_EQ(numbers.read()[7], 4);
    EXPECT_TRUE(std::isfinite(numbers.read()[65]));
  }
}

}  // namespace
}  // namespace trireme
