// LinkBook holds how NCCL connects this rank in each group of a run, and what NCCL lacks here.
// Owned by the World of a run; filled while groups are connected, read afterwards; one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/links/link.h"

namespace trireme {

struct GroupLink {
  std::string group;  // for example "dp"
  Link link;          // ranks in the world
  friend auto operator<=>(const GroupLink&, const GroupLink&) = default;
};

struct LinkBook {
  std::set<GroupLink> links;
  std::set<std::string> nvls;   // groups whose sums the switches of NVLink can compute
  std::set<std::string> notes;  // sentences, each about something that NCCL cannot do here
  std::string trouble;          // why the links are not known; empty if they are

  bool empty() const { return links.empty() && notes.empty() && trouble.empty(); }
  friend bool operator==(const LinkBook&, const LinkBook&) = default;
};

std::string to_text(const LinkBook& book);
// Throws DataError for anything that to_text() does not write.
LinkBook parse_link_book(std::string_view text);
// Returns every rank's book, by rank. Collective.
std::vector<LinkBook> gather_link_books(const LinkBook& own, Communicator& world);

// LinkSummary describes links of one kind.
struct LinkSummary {
  LinkKind kind = LinkKind::p2p;
  bool gpu_direct = false;
  bool between_hosts = false;
  std::int64_t pairs = 0;        // pairs of ranks
  std::set<std::string> groups;  // groups that use such links
};
// members: all ranks.
std::vector<LinkSummary> summarize(const std::vector<LinkBook>& books, const GroupMembers& members);
// Returns, for example, "InfiniBand with GPUDirect RDMA: 8 pairs of ranks between hosts (dp)".
std::string summary_text(const LinkSummary& summary);

}  // namespace trireme
