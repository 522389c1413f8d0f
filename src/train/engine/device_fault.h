// Defines a fault point that numbers in a device's memory pass, for tests of fault detection.
#pragma once

#include <string_view>

#include "src/compute/device_context.h"

namespace trireme {

// Lets a planned fault change `numbers`, f32, as a faulty processor would. Copies them through the
// host only if faults are armed. Used by the thread of the context's stream.
void device_fault(std::string_view site, const View& numbers, DeviceContext& context);

}  // namespace trireme
