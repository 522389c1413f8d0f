// Ends a process that runs out of memory with words and an exit code instead of SIGABRT.
#pragma once

#include <string_view>

namespace trireme {

// What the program says about a std::bad_alloc.
inline constexpr std::string_view kOutOfMemory =
    "out of memory: use a smaller micro-batch or model, or fewer ranks on this host";

// From now on, a std::bad_alloc that nobody catches, in any thread, ends this process with
// ExitCode::device and a line on standard error. Neither needs memory. Other causes of
// std::terminate() abort as before.
void end_with_words_without_memory();

}  // namespace trireme
