// Decides whether the links of a run are as good as comm.require demands. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mpi/links/link_book.h"

namespace trireme {

// Returns the words of comm.require:
//   any        nothing is demanded
//   rdma       whatever crosses the network uses RDMA
//   gpudirect  the same, and the adapters access the memory of the GPUs without the host
//   nvlink     GPUs of one host exchange data over NVLink
std::vector<std::string> link_requirements();

// LinkFault is a reason to refuse a run.
struct LinkFault {
  std::string text;
  // The first rank whose links are all unfit while other ranks have fit ones: its node is at fault.
  // If there is none, these nodes cannot meet the requirement.
  std::optional<int> rank;
};
// required: words of link_requirements(). books: those of all ranks of the world, whose members are
// given.
std::optional<LinkFault> find_link_fault(const std::vector<std::string>& required,
                                         const std::vector<LinkBook>& books,
                                         const GroupMembers& members);

}  // namespace trireme
