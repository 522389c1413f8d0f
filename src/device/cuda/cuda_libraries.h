// The library of CUDA that a program for GPUs needs to compute on one: cuBLASLt, which it loads
// when it first does. nccl_trouble() (mpi/nccl/nccl_world.h) reports about NCCL, which only
// connects GPUs. Callable from any thread.
#pragma once

#include <string>

namespace trireme::cuda {

// Returns why this process cannot use cuBLASLt, and what to do; empty if it can.
std::string library_trouble();

}  // namespace trireme::cuda
