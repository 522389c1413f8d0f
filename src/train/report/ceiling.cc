#include "src/train/report/ceiling.h"

#include <algorithm>
#include <vector>

#include "src/base/stopwatch.h"
#include "src/tensor/tensor.h"

namespace trireme {
namespace {

constexpr int kLeastRounds = 3;

}  // namespace

ProductRate measure_product_rate(DeviceContext& context, Pool& pool, DType dtype, std::int64_t size,
                                 int rounds, double enough) {
  const Kernels& kernels = context.kernels();
  Stream& stream = context.stream();
  const Tensor a(pool, {size, size}, dtype);
  const Tensor b(pool, {size, size}, dtype);
  const Tensor c(pool, {size, size}, dtype);
  kernels.fill(stream, a.view(), 0.5F);
  kernels.fill(stream, b.view(), 0.25F);
  if (!context.device().is_host()) {
    // A GPU needs less power for constant operands, and runs faster.
    for (const Tensor* operand : {&a, &b}) {
      kernels.dropout(stream, {.batch = 1,
                               .elements_per_sample = size * size,
                               .seed = 1,
                               .probability = 0.5F,
                               .x = operand->view(),
                               .y = operand->view()});
    }
  }
  Matmul product;
  product.m = product.n = product.k = size;
  product.a = a.view();
  product.b = b.view();
  product.c = c.view();

  kernels.matmul(stream, product);
  stream.synchronize();
  std::vector<double> seconds;
  const Stopwatch all;
  for (int round = 0; round < rounds && (round < kLeastRounds || all.seconds() < enough); ++round) {
    const Stopwatch watch;
    kernels.matmul(stream, product);
    stream.synchronize();
    seconds.push_back(watch.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  const auto n = static_cast<double>(size);
  const double flops = 2 * n * n * n;
  return {flops / seconds[seconds.size() / 2], flops / seconds.front()};
}

}  // namespace trireme
