#include "src/app/command/launcher_rank.h"

#include <cstdlib>
#include <initializer_list>

namespace trireme {

int rank_before_start() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* const rank = std::getenv(name)) {
      return static_cast<int>(std::strtol(rank, nullptr, 10));
    }
  }
  return 0;
}

}  // namespace trireme
