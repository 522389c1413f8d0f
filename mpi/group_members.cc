#include "mpi/group_members.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/check.h"

namespace trireme {

GroupMembers::GroupMembers(int rank, std::vector<Member> members)
    : rank_(rank), members_(std::move(members)) {
  check(rank >= 0 && rank < size(), "this rank is one of its group");
}

GroupMembers GroupMembers::of_world(int rank, const std::vector<std::string>& hosts) {
  std::vector<Member> members;
  for (const std::string& host : hosts) {
    members.push_back({static_cast<int>(members.size()), host});
  }
  return {rank, std::move(members)};
}

GroupMembers GroupMembers::subset(const std::vector<int>& ranks) const {
  std::vector<Member> members;
  for (const int rank : ranks) {
    members.push_back(at(rank));
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  return {static_cast<int>(own), std::move(members)};
}

std::vector<int> GroupMembers::world_ranks() const {
  std::vector<int> numbers;
  for (const Member& member : members_) {
    numbers.push_back(member.world_rank);
  }
  return numbers;
}

std::vector<std::string> GroupMembers::hosts() const {
  std::vector<std::string> hosts;
  for (const Member& member : members_) {
    hosts.push_back(member.host);
  }
  return hosts;
}

std::string GroupMembers::describe(int rank) const {
  return fmt::format("rank {} (host {})", world_rank(rank), host(rank));
}

const GroupMembers::Member& GroupMembers::at(int rank) const {
  check(rank >= 0 && rank < size(), "a rank is one of its group");
  return members_[static_cast<std::size_t>(rank)];
}

}  // namespace trireme
