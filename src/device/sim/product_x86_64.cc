#include "src/device/sim/product.h"
#include "src/device/sim/product_loops.h"

namespace sim {
namespace {

[[gnu::target("avx2")]] void multiply_panels_avx2(const float* a, const float* b, std::int64_t k,
                                                  float* sums) {
  multiply_panels_loops(a, b, k, sums);
}

void multiply_panels_baseline(const float* a, const float* b, std::int64_t k, float* sums) {
  multiply_panels_loops(a, b, k, sums);
}

}  // namespace

// Neither variant fuses products into sums, so their results have the same bits.
void multiply_panels(const float* a, const float* b, std::int64_t k, float* sums) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  (has_avx2 ? multiply_panels_avx2 : multiply_panels_baseline)(a, b, k, sums);
}

}  // namespace sim
