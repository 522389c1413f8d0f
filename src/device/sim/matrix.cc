#include "src/device/sim/matrix.h"

namespace sim {

void read_elements(const std::byte* from, cudaDataType type, std::int64_t first, std::int64_t count,
                   float* to) {
  with_reader(type, [=](auto read) {
    for (std::int64_t at = 0; at < count; ++at) {
      to[at] = read(from, first + at);
    }
  });
}

void write_elements(std::byte* to, cudaDataType type, std::int64_t first, std::int64_t count,
                    const float* from) {
  switch (type) {
    case CUDA_R_32F:
      for (std::int64_t at = 0; at < count; ++at) {
        reinterpret_cast<float*>(to)[first + at] = from[at];
      }
      return;
    case CUDA_R_16F:
      for (std::int64_t at = 0; at < count; ++at) {
        reinterpret_cast<__half*>(to)[first + at] = __float2half_rn(from[at]);
      }
      return;
    default:
      for (std::int64_t at = 0; at < count; ++at) {
        reinterpret_cast<__nv_bfloat16*>(to)[first + at] = __float2bfloat16_rn(from[at]);
      }
  }
}

}  // namespace sim
