// A Context is where a suspended thread of execution continues: its stack pointer, below which its
// registers are saved. context_x86_64.cc or context_ucontext.cc implements the two functions.
#pragma once

#include <cstddef>

namespace sim {

using Context = void*;

// Returns a context that will call `entry`, which must not return, on the given stack.
Context make_context(std::byte* stack, std::size_t bytes, void (*entry)());

}  // namespace sim

// Saves the caller's context and continues `to`. Returns when somebody continues *from.
extern "C" void sim_switch_context(sim::Context* from, sim::Context to);
