// Tests of products that go beyond comparing every entry with reference: equal bits for any number
// of threads, and the seams where a product is cut into blocks. CTest also runs this program with
// the baseline and avx2 tables, for which oneDNN takes other paths.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "tests/kernels/array.h"

namespace trireme {
namespace {

using testing::Array;

struct MatmulCase {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  DType type, out;
  bool accumulate = false;
  bool bias = false;
  std::string name() const {
    return fmt::format("{}x{}x{} ta{} tb{} {}->{} accumulate{} bias{}", m, n, k, transpose_a,
                       transpose_b, dtype_name(type), dtype_name(out), accumulate, bias);
  }
};

Array filled(std::int64_t count, DType dtype, std::uint64_t seed) {
  return Array::uniform(count, dtype, seed, 1);
}

struct Operands {
  Array a, b, bias;
  explicit Operands(const MatmulCase& c)
      : a(filled(c.m * c.k, c.type, 1)),
        b(filled(c.k * c.n, c.type, 2)),
        bias(filled(c.n, c.type, 3)) {}
};

Array product(const Kernels& kernels, const MatmulCase& c, Operands& in, int threads) {
  Array out = c.accumulate ? filled(c.m * c.n, c.out, 4) : Array(c.m * c.n, c.out);
  Stream stream(Device::cpu(), threads);
  kernels.matmul(stream, {.m = c.m,
                          .n = c.n,
                          .k = c.k,
                          .a = in.a.view(),
                          .b = in.b.view(),
                          .c = out.view(),
                          .bias = c.bias ? in.bias.view() : View{},
                          .aux = {},
                          .transpose_a = c.transpose_a,
                          .transpose_b = c.transpose_b,
                          .accumulate = c.accumulate});
  return out;
}

void expect_same_bits(const Kernels& kernels, const MatmulCase& c,
                      std::initializer_list<int> threads) {
  Operands in(c);
  const Array one = product(kernels, c, in, 1);
  for (const int n : threads) {
    EXPECT_TRUE(product(kernels, c, in, n).same_bits(one))
        << kernels.name << " " << c.name() << " on " << n;
  }
}

const std::vector<std::pair<DType, DType>> kTypes = {
    {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}};

TEST(MatmulBits, DoNotDependOnThreadsAtOddShapes) {
  const Kernels& kernels = kernels_for(Device::cpu());
  for (const auto& [type, out] : kTypes) {
    for (const std::int64_t m : {1, 17, 130}) {
      for (const std::int64_t n : {1, 7, 130}) {
        for (const std::int64_t k : {1, 33, 1000}) {
          for (int transposes = 0; transposes < 4; ++transposes) {
            expect_same_bits(kernels, {m, n, k, (transposes & 1) != 0, transposes > 1, type, out},
                             {2, 3, 4});
          }
        }
      }
    }
  }
}

// If the sum is long and C is small, oneDNN by itself would divide the sum among threads.
TEST(MatmulBits, DoNotDependOnThreadsWhenTheSumIsLong) {
  const Kernels& kernels = kernels_for(Device::cpu());
  for (const auto& [type, out] : kTypes) {
    for (const std::int64_t side : {1, 32, 96}) {
      for (const std::int64_t k : {1025, 2048, 4097, 8192}) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          expect_same_bits(kernels, {side, 96, k, (transposes & 1) != 0, transposes > 1, type, out},
                           {2, 3, 16});
        }
      }
    }
  }
}

// The shapes are those of a tiny model and GPT-2 124M; the gradients are stored or added.
TEST(MatmulBits, DoNotDependOnThreadsForWeightGradients) {
  const Kernels& kernels = kernels_for(Device::cpu());
  const std::vector<std::array<std::int64_t, 3>> shapes = {
      {64, 192, 2048}, {64, 64, 2048}, {257, 64, 2048}, {768, 768, 1024}, {768, 2304, 256}};
  for (const auto& [m, n, k] : shapes) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const bool accumulate : {false, true}) {
        expect_same_bits(kernels, {m, n, k, true, false, type, DType::f32, accumulate}, {2, 3, 4});
      }
    }
  }
}

double expected(const MatmulCase& c, const Operands& in, std::int64_t row, std::int64_t column) {
  double sum = c.bias ? static_cast<double>(in.bias[column]) : 0;
  for (std::int64_t i = 0; i < c.k; ++i) {
    sum += static_cast<double>(in.a[c.transpose_a ? i * c.m + row : row * c.k + i]) *
           static_cast<double>(in.b[c.transpose_b ? column * c.k + i : i * c.n + column]);
  }
  return sum;
}

// The products are longer than a block along M, N or K, and elements on both sides of every cut are
// checked.
TEST(Matmul, BlocksMeetWithoutSeams) {
  const Kernels& kernels = kernels_for(Device::cpu());
  const Array before = filled(5000 * 40, DType::f32, 4);
  const std::vector<MatmulCase> cases = {
      {5000, 3, 40, false, false, DType::f32, DType::f32, true},
      {5000, 3, 40, true, true, DType::bf16, DType::f32, false, true},
      {3, 5000, 40, false, true, DType::bf16, DType::bf16, false, true},
      {3, 5000, 40, false, false, DType::f32, DType::f32, true},
      {7, 9, 4500, false, true, DType::bf16, DType::bf16, false, true},
      {7, 9, 4500, true, false, DType::bf16, DType::f32, true},
      {7, 9, 4500, true, false, DType::f32, DType::f32, true, true},
      {5000, 33, 1500, true, false, DType::bf16, DType::bf16, false, true},
  };
  for (const MatmulCase& c : cases) {
    Operands in(c);
    const Array out = product(kernels, c, in, 2);
    const double tolerance = std::sqrt(static_cast<double>(c.k)) * 1e-6;
    for (std::int64_t i = 0; i<c.m * c.n; i += c.m * c.n> 10000 ? 41 : 1) {
      const double want =
          expected(c, in, i / c.n, i % c.n) + (c.accumulate ? static_cast<double>(before[i]) : 0);
      const double room = tolerance + (c.out == DType::bf16 ? std::abs(want) / 250 : 0);
      ASSERT_NEAR(static_cast<double>(out[i]), want, room) << c.name() << " at " << i;
    }
  }
}

TEST(Matmul, GeluKeepsTheSumBefore) {
  const Kernels& kernels = kernels_for(Device::cpu());
  const MatmulCase c{5, 37, 19, false, false, DType::f32, DType::f32, false, true};
  Operands in(c);
  Array out(c.m * c.n, c.out);
  Array aux(c.m * c.n, c.type);
  Stream stream(Device::cpu(), 2);
  kernels.matmul(stream, {.m = c.m,
                          .n = c.n,
                          .k = c.k,
                          .a = in.a.view(),
                          .b = in.b.view(),
                          .c = out.view(),
                          .bias = in.bias.view(),
                          .aux = aux.view(),
                          .epilogue = Epilogue::gelu});
  EXPECT_TRUE(aux.same_bits(product(kernels, c, in, 1)));
  for (std::int64_t i = 0; i < c.m * c.n; ++i) {
    const double x = static_cast<double>(aux[i]);
    const double gelu = x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    ASSERT_NEAR(static_cast<double>(out[i]), gelu, 1e-5);
  }
}

}  // namespace
}  // namespace trireme
