// Ends a process that runs out of memory with words and an exit code instead of SIGABRT.
#pragma once

namespace trireme {

// From now on, a std::bad_alloc that nobody catches, in any thread, ends this process with
// ExitCode::device and a line on standard error. Neither needs memory. Other causes of
// std::terminate() abort as before.
void end_with_words_without_memory();

}  // namespace trireme
