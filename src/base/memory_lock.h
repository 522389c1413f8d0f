// Keeps the memory of this process out of swap, so that no data, weights or text in it reach a
// disk.
#pragma once

#include <string>

namespace trireme {

// From now on, the system swaps out no page of this process, nor of what it maps later. Pages that
// are never touched take no memory. Child processes do not inherit this. Throws PolicyError if this
// process may not lock all of its memory.
void lock_all_memory();

// Returns why this process may not lock all of its memory, or "". Changes nothing.
std::string memory_lock_obstacle();

}  // namespace trireme
