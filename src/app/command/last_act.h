// What a command leaves to do once its error has been reported, before end_with() ends the process
// or the job.
#pragma once

#include <functional>

namespace trireme {

// Sets what the process does last before it ends, instead of what was set before. Call this and
// end_with() on the main thread.
void set_last_act(std::function<void()> act);
// Does what set_last_act() has set, if anything. Only end_with() calls this.
void do_last_act();

}  // namespace trireme
