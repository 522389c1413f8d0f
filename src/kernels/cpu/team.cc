#include "src/kernels/cpu/team.h"

#include <algorithm>

#include <omp.h>

namespace trireme::cpu {

int team_for(int threads) {
  if (omp_get_dynamic() != 0) {
    omp_set_dynamic(0);
  }
  if (omp_get_max_active_levels() < 1) {
    omp_set_max_active_levels(1);
  }
  if (threads <= 1 || omp_in_parallel() != 0) {
    return 1;
  }
  return std::min(threads, omp_get_thread_limit());
}

}  // namespace trireme::cpu
