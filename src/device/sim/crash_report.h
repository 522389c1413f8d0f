// Messages about crashes: which thread of which block of a kernel a signal ended, or that code of
// the host touched device memory. The handlers that were installed before run afterwards.
#pragma once

namespace sim {

void report_crashes();
// Provides a stack for the handlers, because the calling thread's may have overflowed.
void use_signal_stack();
// The caller has written a message of its own and is about to abort.
void report_no_abort();

}  // namespace sim
