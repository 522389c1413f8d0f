// Logs how NCCL connects the ranks of a run, and refuses links that comm.require does not permit.
#pragma once

#include <string>
#include <vector>

#include "mpi/links/link_book.h"
#include "src/base/log.h"

namespace trireme {

// Rank 0 logs one line for each kind of link, and an event `links` for programs. Throws on all
// ranks alike if the links are not as `required` (required_links.h): RankFault if those of one
// rank are at fault, ConfigError otherwise. Collective; called once all groups are connected.
void check_links(const std::vector<std::string>& required, const LinkBook& own, Communicator& world,
                 Log& log);

}  // namespace trireme
