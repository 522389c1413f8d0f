#include <cmath>
#include <vector>

#include "src/kernels/fp8.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

// Rounds an operand to 8 bits.
void round_operand(std::vector<double>& x, const Fp8Operand& how) {
  float most = 0;
  for (const double v : x) {
    const float size = std::abs(static_cast<float>(v));
    most = size <= most ? most : size;
  }
  const float given = how.scale.empty() ? 0 : *as<float>(how.scale);
  const float scale = given > 0 ? given : fp8_scale(most, how.format);
  for (double& v : x) {
    const auto narrow = static_cast<float>(v);
    const float finite = std::isfinite(narrow) ? narrow * scale : NAN;
    v = static_cast<double>(round_to_fp8(finite, how.format)) / static_cast<double>(scale);
  }
  if (!how.most.empty() && !(most <= *as<float>(how.most))) {
    *as<float>(how.most) = most;
  }
}

// Returns the operand as [rows, columns] doubles, transposed if it is stored as [columns, rows].
std::vector<double> operand(const ConstView& stored, std::int64_t rows, std::int64_t columns,
                            bool transposed, std::int64_t pitch, const Fp8Operand& how) {
  std::vector<double> result(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result[static_cast<std::size_t>(i * columns + j)] =
          at(stored, transposed ? j * pitch + i : i * pitch + j);
    }
  }
  if (how.format != Fp8Format::none) {
    round_operand(result, how);
  }
  return result;
}

void put_with_epilogue(const Matmul& p, std::int64_t index, double sum) {
  if (p.epilogue == Epilogue::gelu) {
    put(p.aux, index, sum);
    sum = gelu(at(p.aux, index));
  } else if (p.epilogue == Epilogue::gelu_backward) {
    sum *= gelu_slope(at(p.aux, index));
  }
  if (p.accumulate) {
    sum += at(p.c, index);
  }
  put(p.c, index, sum);
}

}  // namespace

void matmul(Stream&, const Matmul& p) {
  const std::vector<double> a = operand(p.a, p.m, p.k, p.transpose_a, p.row_of_a(), p.fp8_a);
  const std::vector<double> b = operand(p.b, p.k, p.n, p.transpose_b, p.row_of_b(), p.fp8_b);
  std::vector<double> row(static_cast<std::size_t>(p.n));
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      row[static_cast<std::size_t>(j)] = p.bias.empty() ? 0 : at(p.bias, j);
    }
    for (std::int64_t k = 0; k < p.k; ++k) {
      const double factor = a[static_cast<std::size_t>(i * p.k + k)];
      const double* b_row = b.data() + k * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) {
        row[static_cast<std::size_t>(j)] += factor * b_row[j];
      }
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      put_with_epilogue(p, i * p.row_of_c() + j, row[static_cast<std::size_t>(j)]);
    }
  }
}

void column_sum(Stream&, const ColumnSum& p) {
  for (std::int64_t j = 0; j < p.n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < p.m; ++i) {
      sum += at(p.x, i * p.n + j);
    }
    put(p.sum, j, sum);
  }
}

}  // namespace trireme::reference
