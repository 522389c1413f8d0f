// Runs the same work in several threads at once.
#pragma once

#include <functional>

namespace trireme {

// Calls work() in this thread and in up to `threads` - 1 others, and returns when all calls have
// returned. If no more threads can be started, fewer do the work. work() must not throw.
void work_in_threads(int threads, const std::function<void()>& work);

}  // namespace trireme
