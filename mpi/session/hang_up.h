// UCX handles SIGHUP from the moment that it is loaded, so that a person can attach a debugger. The
// end of a terminal session would then no longer end a command, and a launch would not see that it
// runs under nohup.
#pragma once

namespace trireme {

// Gives SIGHUP back to what handled it before UCX was loaded, and keeps UCX from taking it in this
// process and its children, unless the environment sets UCX_DEBUG_SIGNO. Call it before any thread
// exists.
void take_hang_up_from_ucx();

}  // namespace trireme
