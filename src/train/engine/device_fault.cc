#include "src/train/engine/device_fault.h"

#include <algorithm>

#include "src/base/fault.h"

namespace trireme {

void device_fault(std::string_view site, const View& numbers, DeviceContext& context) {
  if (!faults_armed()) {
    return;
  }
  std::vector<float> copy = context.read<float>(numbers);
  fault(site, copy.data(), numbers.bytes());
  context.write<float>(numbers, [&](float* to) { std::copy(copy.begin(), copy.end(), to); });
}

}  // namespace trireme
