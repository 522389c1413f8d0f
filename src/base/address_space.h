// Saves address space where it is limited (`ulimit -v`).
#pragma once

namespace trireme {

// Lets all threads allocate from one heap if the address space of this process is limited.
// Otherwise the C library reserves 64 MiB, and up to 128 MiB for a moment, for each thread that
// allocates while another one does, so that the same run fits into a limit in one start and not in
// the next. Must be called before the first thread is started.
void use_one_heap_if_limited();

}  // namespace trireme
