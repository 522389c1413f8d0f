#include "src/compute/kernel_choice.h"

#include <array>
#include <cstdlib>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/kernels/cpu/product.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/no_kernels.h"
#include "src/kernels/reference/reference.h"

namespace trireme {

// cpu/isa/table.cc defines these, once per instruction set.
namespace cpu::baseline {
extern const Kernels kTable;
}
namespace cpu::avx2 {
extern const Kernels kTable;
}
namespace cpu::avx512 {
extern const Kernels kTable;
}

namespace {

// Tests the instructions of -march=x86-64-v3 and x86-64-v4 that the compiler's builtins can query.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}
bool always() { return true; }

struct Choice {
  const Kernels* table;
  bool (*runs_here)();
};

// Sorted from the slowest to the fastest.
constexpr std::array<Choice, 4> kChoices = {{{&reference::kTable, always},
                                             {&cpu::baseline::kTable, always},
                                             {&cpu::avx2::kTable, has_avx2},
                                             {&cpu::avx512::kTable, has_avx512}}};

}  // namespace

const Kernels& kernels_named(std::string_view name) {
  for (const Choice& choice : kChoices) {
    if (choice.table->name != name) {
      continue;
    }
    if (!choice.runs_here()) {
      throw ConfigError(
          fmt::format("kernels '{}' (TRIREME_KERNELS): this processor lacks the instruction set; "
                      "unset the variable to use the fastest kernels that it supports",
                      printable(name)));
    }
    return *choice.table;
  }
  throw ConfigError(
      fmt::format("unknown kernels '{}' (TRIREME_KERNELS): allowed are reference, baseline, avx2 "
                  "and avx512; unset the variable to use the fastest",
                  printable(name)));
}

const Kernels& kernels_for(Device device) {
  if (device.kind == DeviceKind::cuda) {
    return cuda_kernels();
  }
  if (device.kind == DeviceKind::counting) {
    return no_kernels();
  }
  const char* asked = std::getenv("TRIREME_KERNELS");
  if (asked != nullptr && *asked != '\0') {
    const Kernels& table = kernels_named(asked);
    // oneDNN must keep to the same instruction set, so that a run has the bits of the lesser
    // processor.
    if (table.name != reference::kTable.name) {
      cpu::limit_product_instructions(table.name);
    }
    return table;
  }
  const Kernels* best = nullptr;
  for (const Choice& choice : kChoices) {
    if (choice.runs_here()) {
      best = choice.table;
    }
  }
  return *best;
}

}  // namespace trireme
