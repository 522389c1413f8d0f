#include "src/kernels/cpu/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace trireme::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

void* scratch(std::int64_t bytes) {
  thread_local std::unique_ptr<void, Free> data;
  thread_local std::int64_t capacity = 0;
  if (capacity < bytes) {
    const std::int64_t wanted =
        (std::max(bytes, 2 * capacity) + kAlignment - 1) / kAlignment * kAlignment;
    data.reset(std::aligned_alloc(kAlignment, static_cast<std::size_t>(wanted)));
    if (data == nullptr) {
      throw std::bad_alloc();
    }
    capacity = wanted;
  }
  return data.get();
}

}  // namespace

double* scratch_doubles(std::int64_t count) { return static_cast<double*>(scratch(count * 8)); }
float* scratch_floats(std::int64_t count) { return static_cast<float*>(scratch(count * 4)); }

}  // namespace trireme::cpu
