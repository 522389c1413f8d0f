// Keeps track of the memory that is registered with communicators of NCCL's stand-in. What NCCL
// leaves undefined ends the process here: freeing memory that is registered, and ending a
// communicator (other than by an abort) that has registered memory. Any thread.
#pragma once

#include <cstdint>

namespace sim {

void note_registration(const void* communicator, const void* memory);
// Returns false if the memory is not registered with the communicator.
bool drop_registration(const void* communicator, const void* memory);
void forget_registrations(const void* communicator);
void require_all_deregistered(const void* communicator);
void require_not_registered(const void* memory);
// Returns how many times memory is registered now, and how many times it was since the start.
std::int64_t registrations();
std::int64_t registrations_so_far();

}  // namespace sim
