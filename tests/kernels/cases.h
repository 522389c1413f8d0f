// A case is one call of one entry of the kernel table on fixed data. The same cases are compared
// with the reference and run with other numbers of threads.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "src/compute/kernel_choice.h"
#include "tests/kernels/array.h"

namespace trireme::testing {

// Accepts |result - expected| <= relative |expected| + absolute * the largest |expected| of the
// array.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

struct Case {
  std::string name;
  std::function<Results(const Kernels&, Stream&)> run;
  Tolerance f32{4e-6, 2e-6};
  Tolerance bf16{1.0 / 128, 4e-3};

  // f16 has three more bits than bf16.
  Tolerance tolerance(DType dtype) const {
    return dtype == DType::f32    ? f32
           : dtype == DType::bf16 ? bf16
                                  : Tolerance{bf16.relative / 8, bf16.absolute / 8};
  }
};

// GoogleTest prints a case by its name in messages.
inline void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

std::vector<Case> product_cases();
std::vector<Case> row_cases();
std::vector<Case> element_cases();

inline std::string dtype_word(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : dtype == DType::f16 ? "f16" : "f32";
}

}  // namespace trireme::testing
