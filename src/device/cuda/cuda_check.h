// Turns error codes of the CUDA runtime into exceptions.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include "src/device/cuda_device.h"

namespace trireme::cuda {

// Keeps the name of a device for the messages about its errors: a device that has failed cannot be
// asked. Callable from any thread, as the functions below.
void remember_device(int index, const DeviceFacts& facts);
// Returns, for example, "CUDA device 0 (NVIDIA H100 80GB HBM3, GPU-5b2e..., 0000:1b:00.0) on n17".
std::string describe_device(int index);

// Throws DeviceError that names the call, the error, and the device of the calling thread, or
// ResourceError if the device has no memory left.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);
// The same where the name of the call says little. failed: says what has failed, for example "a
// product failed".
[[noreturn]] void throw_failure(cudaError_t error, const std::string& failed);

// Throws ResourceError that names the device of the calling thread, and how much of its memory is
// free. bytes: what could not be allocated.
[[noreturn]] void throw_out_of_device_memory(std::int64_t bytes);
// The same where a library or a kernel needs memory of its own, and nobody says how much. what:
// says which call has failed.
[[noreturn]] void throw_out_of_memory_in(const std::string& what);
// Throws ResourceError for a device that has no memory left for the context of this process, which
// no setting of the program makes smaller.
[[noreturn]] void throw_no_room_on(int index, cudaError_t error, const char* call);
// Throws ResourceError for memory of the host that the device can access directly.
[[noreturn]] void throw_out_of_pinned_memory(std::int64_t bytes);

inline void cuda_check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) {
    throw_cuda_error(error, call);
  }
}

// Makes the device that of the calling thread. Every thread calls it before anything else of CUDA,
// also before it asks whether an event has been reached: a new thread's device is number 0, and
// CUDA would make this process a user of that one, which takes hundreds of MB there.
inline void use_device(int index) { cuda_check(cudaSetDevice(index), "cudaSetDevice"); }

}  // namespace trireme::cuda
