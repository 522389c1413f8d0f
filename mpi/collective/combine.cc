#include "mpi/collective/combine.h"

#include <type_traits>

#include "src/base/floating_point.h"

namespace trireme {
namespace {

// Signed overflow is undefined in C++; unsigned arithmetic wraps.
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

// If a is a NaN, `a != a` selects it; if b is a NaN, the comparison is false and selects b.
template <class T>
T max_of(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T min_of(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
void combine_as(T* __restrict into, const T* __restrict other, std::int64_t n, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      for (std::int64_t i = 0; i < n; ++i) {
        into[i] = sum_of(into[i], other[i]);
      }
      break;
    case ReduceOp::max:
      for (std::int64_t i = 0; i < n; ++i) {
        into[i] = max_of(into[i], other[i]);
      }
      break;
    case ReduceOp::min:
      for (std::int64_t i = 0; i < n; ++i) {
        into[i] = min_of(into[i], other[i]);
      }
      break;
  }
}

template <class T>
void combine_view(const View& into, const void* other, ReduceOp op) {
  combine_as(static_cast<T*>(into.data), static_cast<const T*>(other), into.count, op);
}

}  // namespace

void combine(const View& into, const void* other, ReduceOp op) {
  restore_floating_point();  // a library may have changed it on this thread
  switch (into.dtype) {
    case DType::f32:
      return combine_view<float>(into, other, op);
    case DType::f64:
      return combine_view<double>(into, other, op);
    case DType::i32:
      return combine_view<std::int32_t>(into, other, op);
    case DType::i64:
      return combine_view<std::int64_t>(into, other, op);
    default:
      check(false, "a reduction is over f32, f64, i32, i64 or bf16");
  }
}

void widen(const bf16* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = to_float(from[i]);
  }
}

void narrow(const float* from, bf16* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = to_bf16(from[i]);
  }
}

}  // namespace trireme
