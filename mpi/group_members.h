// GroupMembers lists the ranks of a group in their order, and says which of them is this rank. A
// plain value.
#pragma once

#include <string>
#include <vector>

namespace trireme {

class GroupMembers {
 public:
  struct Member {
    int world_rank = 0;  // its number in the world, which messages show
    std::string host;
  };

  // `rank` is this rank's number in the group.
  GroupMembers(int rank, std::vector<Member> members);
  // Returns the world; hosts[r] is the host of rank r.
  static GroupMembers of_world(int rank, const std::vector<std::string>& hosts);
  // Returns the group that consists of these ranks of this group, in this order. This rank must be
  // one of them.
  GroupMembers subset(const std::vector<int>& ranks) const;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return at(rank).world_rank; }
  const std::string& host(int rank) const { return at(rank).host; }
  std::vector<int> world_ranks() const;
  std::vector<std::string> hosts() const;
  // Returns "rank 3 (host n2)", where the number is that in the world.
  std::string describe(int rank) const;

 private:
  const Member& at(int rank) const;

  int rank_;
  std::vector<Member> members_;
};

}  // namespace trireme
