// Does what the words of the kernel language (include/kernel_words.h, include/cuda_language.h) ask
// of the thread that executes them. Every function but the last must be called from a kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <vector_types.h>

// These belong to the one OS thread that runs kernels, and are set whenever it continues another
// thread of the block.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace sim {

inline constexpr int kWarpSize = 32;

// Returns the position of the calling thread in its warp.
int lane();

// Waits for all threads of the block.
void block_barrier();

// The records that the lanes of a warp pass to an operation that they perform together; nullptr for
// lanes that take no part.
using Records = std::array<void*, kWarpSize>;
using Collective = void (*)(const Records& records);

// Waits until all lanes of the mask that have not ended are here; the last one performs the
// operation for all of them. The record stays valid until the call returns.
void warp_collective(unsigned mask, void* record, Collective operation);

// The same for instructions that the whole warp must execute.
void whole_warp_collective(void* record, Collective operation);

// Lets other threads of the block run.
void yield_thread();

// The bytes arrive when the thread waits for the group that the copy is committed with; until then
// the destination holds NaN.
void issue_copy(void* shared, const void* global, std::size_t bytes);
void commit_copies();
// Waits until at most `pending` groups are under way.
void wait_copies(int pending);

// Returns the block's dynamic shared memory, aligned to 128 bytes.
void* dynamic_shared_memory();

// Ends the program with a message that names the kernel's block and thread, if one is running.
[[noreturn]] void die(const char* what);

}  // namespace sim
