// GroupMembers: the ranks of a group, in order, and this rank's number among them. A value.
#pragma once

#include <string>
#include <vector>

namespace trireme {

class GroupMembers {
 public:
  struct Member {
    int world_rank = 0;  // its number in the world: the one that people know
    std::string host;
  };

  // rank: this rank's number in the group.
  GroupMembers(int rank, std::vector<Member> members);
  // All ranks of the world, by their hosts.
  static GroupMembers of_world(int rank, const std::vector<std::string>& hosts);
  // The group of these ranks of this group, in this order; this rank is one of them.
  GroupMembers subset(const std::vector<int>& ranks) const;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return at(rank).world_rank; }
  const std::string& host(int rank) const { return at(rank).host; }
  std::vector<int> world_ranks() const;
  std::vector<std::string> hosts() const;
  // "rank 3 (host n2)", by the number in the world.
  std::string describe(int rank) const;

 private:
  const Member& at(int rank) const;

  int rank_;
  std::vector<Member> members_;
};

}  // namespace trireme
