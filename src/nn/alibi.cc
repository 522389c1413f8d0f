#include "src/nn/alibi.h"

#include <bit>
#include <cmath>

namespace trireme {

float alibi_slope(std::int64_t head, std::int64_t heads) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const auto of = [&](std::int64_t number, std::int64_t among) {
    return std::exp2(-8.0 * static_cast<double>(number + 1) / static_cast<double>(among));
  };
  return static_cast<float>(head < power ? of(head, power) : of(2 * (head - power), 2 * power));
}

}  // namespace trireme
