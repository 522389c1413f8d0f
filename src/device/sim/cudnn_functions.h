// The simulated cuDNN's functions by name, as from a library that is loaded at run time.
#pragma once

#include <string>
#include <string_view>

namespace sim {

// Returns null if the simulated device has no cuDNN (TRIREME_SIM_CUDNN=0) or no such function, and
// then sets `why`.
void* cudnn_function(std::string_view name, std::string& why);

}  // namespace sim
