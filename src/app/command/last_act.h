// What a command leaves to do once its error has been reported, before end_with() ends the process
// or the job.
#pragma once

#include <functional>

namespace trireme {

// Replaces the act of before. Call it and end_with() on the main thread.
void set_last_act(std::function<void()> act);
// Does nothing if none was set. Called by end_with().
void do_last_act();

}  // namespace trireme
