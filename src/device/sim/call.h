// Does what every function of the runtime's interface needs at its start and end.
#pragma once

#include <cstdint>

#include <driver_types.h>

namespace sim {

// Returns the error to return at once: an injected one, or the one that the device failed with.
cudaError_t begin_call(const char* name);

// Returns how often the calling thread has called functions that may wait for a device, as
// cudaStreamSynchronize() and cudaFree() do.
std::int64_t blocking_calls();

// Remembers an error for cudaGetLastError() and returns it.
cudaError_t end_call(cudaError_t error);

// Returns and forgets, or just returns, the calling thread's last error.
cudaError_t take_last_error();
cudaError_t peek_last_error();

// Returns whether a device can be used after the error.
bool is_survivable(cudaError_t error);

}  // namespace sim
