// Converts weights between the element types of model files. Pure functions, for any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/device/dtype.h"

namespace trireme {

// Converts `count` elements of type f32, bf16, f16 or f64 (rounded to nearest) to floats. Throws
// DataError for other types.
void widen(const std::byte* from, DType dtype, std::int64_t count, float* to);
// Rounds `count` floats to nearest, ties to even, to f32, bf16 or f16. Returns the number of the
// first element that is finite and becomes infinite, or `count`.
std::int64_t narrow(const float* from, std::int64_t count, DType dtype, std::byte* to);
// Returns the number of the first element that is NaN or infinite, or `count`. Many elements are
// looked at by several threads.
std::int64_t first_not_finite(const float* from, std::int64_t count);

}  // namespace trireme
