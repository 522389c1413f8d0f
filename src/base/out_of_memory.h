// Ends a process that runs out of memory with words and an exit code instead of SIGABRT.
#pragma once

#include <string_view>

namespace trireme {

// What the program says about a std::bad_alloc while it trains or evaluates, and in commands that
// convert or check files.
inline constexpr std::string_view kOutOfMemory =
    "out of memory: use a smaller micro-batch or model, or fewer ranks on this host";
inline constexpr std::string_view kOutOfMemoryForFiles =
    "out of memory: raise the limits of this process (ulimit -v and -d) or of its job, or use a "
    "machine with more memory";

// From now on, a std::bad_alloc that nobody catches, in any thread, ends this process with
// ExitCode::device and a line on standard error. Neither needs memory. Other causes of
// std::terminate() abort as before.
void end_with_words_without_memory();

}  // namespace trireme
