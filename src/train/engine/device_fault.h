// A fault point where numbers of a device pass.
#pragma once

#include <string_view>

#include "src/compute/device_context.h"

namespace trireme {

// Lets a planned fault change `numbers`, f32, as a processor that errs would. Costs nothing unless
// faults are armed.
void device_fault(std::string_view site, const View& numbers, DeviceContext& context);

}  // namespace trireme
