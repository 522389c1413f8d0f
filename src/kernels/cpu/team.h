// How many threads OpenMP gives to a parallel region of the calling thread. A smaller team than
// asked for is usual: OMP_DYNAMIC, OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS all lead to one, and
// oneDNN's products are wrong where a primitive made for more threads runs on it.
#pragma once

namespace trireme::cpu {

// The threads of a parallel region that the calling thread starts now and that asks for `threads`;
// 1 within a region. Switches dynamic adjustment off and raises a limit of no active levels, both
// for the calling thread; a limit of the threads can't be raised. Reads four of OpenMP's variables,
// so that every product can afford the call.
int team_for(int threads);

}  // namespace trireme::cpu
