#include "src/base/same_kernels.h"

namespace trireme {

std::string same_kernels_advice(std::string_view one, std::string_view other) {
  // The tables are sorted from the least set of instructions to the richest.
  for (const std::string_view table : {"reference", "baseline", "avx2"}) {
    if (one.starts_with(table) || other.starts_with(table)) {
      return "set TRIREME_KERNELS=" + std::string(table) + " on all nodes";
    }
  }
  return "give all nodes the same ONEDNN_MAX_CPU_ISA, or set TRIREME_KERNELS=avx512 on all of them "
         "(avx2 where one lacks AVX512-BF16)";
}

}  // namespace trireme
