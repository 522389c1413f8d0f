#include "src/device/dtype.h"

#include <array>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"F32", "BF16", "F64", "I32", "I64",
                                                    "U8",  "U16",  "U32", "F16"};

}  // namespace

std::string_view dtype_name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

DType parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<DType>(i);
    }
  }
  throw DataError(fmt::format(
      "the element type '{}' is not supported: F32, BF16, F64, I32, I64, U8, U16, U32 and F16 are",
      name));
}

}  // namespace trireme
