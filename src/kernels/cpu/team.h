// Says how many threads OpenMP gives to a parallel region of the calling thread. OMP_DYNAMIC,
// OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS often make the team smaller than requested, and
// oneDNN's products are wrong if a primitive made for more threads runs on it.
#pragma once

namespace trireme::cpu {

// Returns the number of threads of a parallel region that the calling thread starts next with
// `threads` requested, or 1 within a region. For the calling thread, disables dynamic adjustment
// and raises a limit of zero active levels; a thread limit can't be raised. Only reads four OpenMP
// variables, so that every product can afford the call.
int team_for(int threads);

}  // namespace trireme::cpu
