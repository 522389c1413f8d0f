// Compares the kernels for packed weights of every instruction set with the plain ones, and packing
// with its bounds.
#include <cmath>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/compute/device_context.h"
#include "src/compute/kernel_choice.h"
#include "src/kernels/packed_kernels.h"

namespace trireme {
namespace {

// Numbers in [-1, 1), of which every 37th is ten times as large.
std::vector<float> packed_numbers(std::int64_t n, std::uint64_t seed) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(mix64(seed + static_cast<std::uint64_t>(i)) >> 40);
    x.push_back(static_cast<float>((u * 0x1p-23 - 1) * (i % 37 == 0 ? 10 : 1)));
  }
  return x;
}

// A matrix [rows, columns] and its packed form.
struct Packed {
  std::vector<float> elements;
  std::vector<std::uint8_t> codes;
  std::vector<bf16> scales;
  PackedMatrix matrix;
  bool stored_columns;

  // columns_first: the elements are stored [columns, rows].
  Packed(std::int64_t rows, std::int64_t columns, int bits, bool columns_first = false)
      : elements(packed_numbers(rows * columns, 7)), stored_columns(columns_first) {
    matrix.bits = bits;
    matrix.rows = rows;
    matrix.columns = columns;
    codes.resize(static_cast<std::size_t>(matrix.code_bytes()), 0xEE);
    scales.resize(static_cast<std::size_t>(matrix.scale_count()));
    const View to_codes{codes.data(), std::ssize(codes), DType::u8};
    const View to_scales{scales.data(), std::ssize(scales), DType::bf16};
    matrix.codes = to_codes;
    matrix.scales = to_scales;
    pack_matrix(elements.data(), columns_first ? 1 : columns, columns_first ? rows : 1, matrix,
                {to_codes, to_scales}, 2);
  }
  float element(std::int64_t row, std::int64_t column) const {
    return elements[static_cast<std::size_t>(stored_columns ? column * matrix.rows + row
                                                            : row * matrix.columns + column)];
  }
};

// The tables of kernels on whose processors the packed ones run.
class PackedKernelsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      table_ = &kernels_named(GetParam());
    } catch (const ConfigError&) {
      GTEST_SKIP() << "this processor lacks " << GetParam();
    }
  }
  static std::vector<float> multiply(const Kernels& table, const Packed& w,
                                     const std::vector<float>& x, const std::vector<float>& bias,
                                     int threads = 1) {
    DeviceContext context(table, threads);
    const std::int64_t rows = std::ssize(x) / w.matrix.columns;
    std::vector<float> y(static_cast<std::size_t>(rows * w.matrix.rows), -77);
    packed_kernels(table).multiply(
        context.stream(), w.matrix, {x.data(), std::ssize(x), DType::f32},
        bias.empty() ? ConstView() : ConstView(bias.data(), std::ssize(bias), DType::f32),
        {y.data(), std::ssize(y), DType::f32});
    return y;
  }

  const Kernels* table_ = nullptr;
};

// Sums of up to 200 products of numbers up to 10 in f32 and in double.
TEST_P(PackedKernelsTest, MultiplyAsThePlainOnes) {
  for (const int bits : {8, 4}) {
    for (const std::int64_t columns : {1, 31, 32, 33, 200}) {
      for (const std::int64_t n : {1, 16, 77}) {
        const Packed w(n, columns, bits);
        const std::vector<float> x = packed_numbers(7 * columns, 1000);
        const std::vector<float> bias = packed_numbers(n, 5000);
        const auto expected = multiply(kernels_named("reference"), w, x, bias);
        const auto own = multiply(*table_, w, x, bias);
        ASSERT_EQ(own.size(), expected.size());
        for (std::size_t i = 0; i < own.size(); ++i) {
          EXPECT_NEAR(own[i], expected[i], 1e-5 * static_cast<double>(columns + 10))
              << bits << " bits, [" << n << ", " << columns << "], " << i;
        }
      }
    }
  }
}

// What rounding x to 8 bits costs: half a step, m / 254, for each element of a group.
TEST_P(PackedKernelsTest, MultiplyAlmostAsDequantizedWeights) {
  for (const int bits : {8, 4}) {
    const std::int64_t columns = 96;
    const Packed w(40, columns, bits);
    const std::vector<float> x = packed_numbers(2 * columns, 1000);
    const auto own = multiply(*table_, w, x, {});
    for (std::int64_t i = 0; i < std::ssize(own); ++i) {
      double sum = 0;
      double error = 1e-4;
      for (std::int64_t k = 0; k < columns; ++k) {
        const float* const row = x.data() + i / 40 * columns;
        const float* const group = row + k / kPackedGroup * kPackedGroup;
        double most = 0;
        for (std::int64_t j = 0; j < kPackedGroup; ++j) {
          most = std::max(most, std::abs(static_cast<double>(group[j])));
        }
        const double element = packed_element(w.matrix, i % 40, k);
        sum += element * row[k];
        error += std::abs(element) * most / 253;
      }
      EXPECT_NEAR(own[static_cast<std::size_t>(i)], sum, error);
    }
  }
}

TEST_P(PackedKernelsTest, NeitherThreadsNorOtherRowsChangeABit) {
  for (const int bits : {8, 4}) {
    const Packed w(150, 200, bits);
    const std::vector<float> x = packed_numbers(70 * 200, 1000);
    const auto together = multiply(*table_, w, x, {}, 3);
    std::vector<float> alone;
    for (std::int64_t m = 0; m < 70; ++m) {
      const std::vector<float> row(x.begin() + m * 200, x.begin() + (m + 1) * 200);
      const auto y = multiply(*table_, w, row, {});
      alone.insert(alone.end(), y.begin(), y.end());
    }
    EXPECT_EQ(together, alone);
  }
}

// Sums of integers are exact for the largest codes, too.
TEST_P(PackedKernelsTest, TheLargestCodesDoNotOverflow) {
  for (const int bits : {8, 4}) {
    Packed w(16, 64, bits);
    std::fill(w.codes.begin(), w.codes.end(), bits == 8 ? 1 : 0);  // -127 or -8
    std::fill(w.scales.begin(), w.scales.end(), to_bf16(1));
    const std::vector<float> x(64, -127.0F);
    for (const float sum : multiply(*table_, w, x, {})) {
      EXPECT_EQ(sum, 64.0F * 127 * (bits == 8 ? 127 : 8));
    }
    std::fill(w.codes.begin(), w.codes.end(), 255);  // 127, or 7 twice
    for (const float sum : multiply(*table_, w, x, {})) {
      EXPECT_EQ(sum, -64.0F * 127 * (bits == 8 ? 127 : 7));
    }
  }
}

TEST_P(PackedKernelsTest, NumbersThatAreNotFiniteStayVisible) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const Packed w(20, 70, 8);
    std::vector<float> x = packed_numbers(140, 1000);
    x[100] = bad;
    const auto y = multiply(*table_, w, x, {});
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i >= 20) << "only the second row has " << bad;
    }
  }
}

TEST_P(PackedKernelsTest, ZerosAndTinyNumbersGiveZero) {
  const Packed w(20, 32, 4);
  for (const float x : {0.0F, 1e-38F}) {
    EXPECT_EQ(multiply(*table_, w, std::vector<float>(32, x), {}), std::vector<float>(20, 0.0F));
  }
}

TEST_P(PackedKernelsTest, TakeAndGiveBf16) {
  const Packed w(33, 64, 8);
  std::vector<bf16> x;
  std::vector<float> widened;
  for (const float number : packed_numbers(3 * 64, 1000)) {
    x.push_back(to_bf16(number));
    widened.push_back(to_float(x.back()));
  }
  DeviceContext context(*table_, 1);
  std::vector<bf16> y(3 * 33);
  packed_kernels(*table_).multiply(context.stream(), w.matrix, {x.data(), 3 * 64, DType::bf16}, {},
                                   {y.data(), 3 * 33, DType::bf16});
  const auto expected = multiply(*table_, w, widened, {});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(to_float(y[i]), to_float(to_bf16(expected[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, PackedKernelsTest,
                         ::testing::Values("reference", "baseline", "avx2", "avx512"),
                         [](const auto& each) { return each.param; });

// Returns the largest magnitude of the group that begins at `first`.
float largest_of(const Packed& w, std::int64_t row, std::int64_t first, std::int64_t end) {
  float most = 0;
  for (std::int64_t i = first; i < end; ++i) {
    most = std::max(most, std::abs(w.element(row, i)));
  }
  return most;
}

// With 8 bits, an element is off by at most half a step, which is the largest magnitude by 127,
// rounded up by at most 1 / 128.
TEST(PackMatrix, KeepsElementsWithinHalfAStep) {
  for (const bool columns_first : {false, true}) {
    const Packed w(6, 100, 8, columns_first);
    for (std::int64_t row = 0; row < 6; ++row) {
      for (std::int64_t i = 0; i < 100; ++i) {
        const std::int64_t first = i / kPackedGroup * kPackedGroup;
        const float most =
            largest_of(w, row, first, std::min<std::int64_t>(first + kPackedGroup, 100));
        EXPECT_NEAR(packed_element(w.matrix, row, i), w.element(row, i),
                    0.5001 * most / 127 * (1 + 1.0 / 128));
      }
    }
  }
}

// With 4 bits, the error of a group is at most that of codes from -8 to 7 whose scale makes the
// largest number -8.
TEST(PackMatrix, ChoosesTheScaleWithTheSmallestError) {
  for (const bool columns_first : {false, true}) {
    const Packed w(40, 96, 4, columns_first);
    double all = 0;
    double simple = 0;
    for (std::int64_t row = 0; row < 40; ++row) {
      for (std::int64_t first = 0; first < 96; first += kPackedGroup) {
        float extreme = 0;
        for (std::int64_t i = first; i < first + kPackedGroup; ++i) {
          extreme = std::abs(w.element(row, i)) > std::abs(extreme) ? w.element(row, i) : extreme;
        }
        const float scale = to_float(to_bf16(extreme / -8));
        double error = 0;
        double most = 0;
        for (std::int64_t i = first; i < first + kPackedGroup; ++i) {
          const float x = w.element(row, i);
          error += std::pow(packed_element(w.matrix, row, i) - x, 2);
          most += std::pow(std::clamp(std::nearbyint(x / scale), -8.0F, 7.0F) * scale - x, 2);
        }
        EXPECT_LE(error, most * 1.001 + 1e-9);
        all += error;
        simple += most;
      }
    }
    EXPECT_LT(all, 0.95 * simple);
  }
}

TEST(PackMatrix, KeepsZeros) {
  for (const int bits : {8, 4}) {
    PackedMatrix matrix;
    matrix.bits = bits;
    matrix.rows = 3;
    matrix.columns = 40;
    const std::vector<float> zeros(120, 0.0F);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(matrix.code_bytes()), 1);
    std::vector<bf16> scales(static_cast<std::size_t>(matrix.scale_count()), to_bf16(3));
    const PackedStorage to{{codes.data(), std::ssize(codes), DType::u8},
                           {scales.data(), std::ssize(scales), DType::bf16}};
    matrix.codes = to.codes;
    matrix.scales = to.scales;
    pack_matrix(zeros.data(), 40, 1, matrix, to, 1);
    for (std::int64_t i = 0; i < 120; ++i) {
      EXPECT_EQ(packed_element(matrix, i / 40, i % 40), 0);
    }
  }
}

}  // namespace
}  // namespace trireme
