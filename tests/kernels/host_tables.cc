#include <cstdio>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {

std::vector<const Kernels*> tables_under_test() {
  std::vector<const Kernels*> all;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    try {
      all.push_back(&kernels_named(name));
    } catch (const ConfigError&) {
      std::fprintf(stderr, "skipped: this processor lacks %s\n", name);
    }
  }
  return all;
}

std::vector<DType> activation_types() { return {DType::f32, DType::bf16}; }

bool runs_on_device(const Kernels&) { return false; }

Stream test_stream(int threads) { return {Device::cpu(), threads}; }

void each_schedule(const std::function<void(const std::string&, Stream&)>& run) {
  for (const int threads : {1, 2, 3, 4, 16}) {
    Stream stream = test_stream(threads);
    run(fmt::format("{} threads", threads), stream);
  }
}

}  // namespace trireme::testing
