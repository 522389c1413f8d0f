// The libraries of CUDA that a program for GPUs loads when it first computes on one: cuBLASLt and
// NCCL. Callable from any thread.
#pragma once

#include <string>

namespace trireme::cuda {

// Returns which of these libraries this process cannot use, why, and what to do; empty if it can
// use all of them.
std::string library_trouble();

}  // namespace trireme::cuda
