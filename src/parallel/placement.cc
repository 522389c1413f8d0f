#include "src/parallel/placement.h"

#include <set>

#include <fmt/ranges.h>

#include "src/base/check.h"

namespace trireme {
namespace {

const RankPlace& place_of(const std::vector<RankPlace>& places, int rank) {
  return places.at(static_cast<std::size_t>(rank));
}

std::string spot_of(const RankPlace& place) {
  return place.binding.packages.empty()
             ? fmt::format("host {}", place.host)
             : fmt::format("host {}, socket {}", place.host, place.binding.packages);
}

// Returns the ranks as text, such as "0-3,6".
std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) {
      text += fmt::format("-{}", ranks[last]);
    }
    i = last + 1;
  }
  return text;
}

// Returns whether the ranks of some host are not consecutive in the group.
bool is_interleaved(const std::vector<int>& ranks, const std::vector<RankPlace>& places) {
  std::set<std::string> left;
  std::string current;
  for (const int rank : ranks) {
    const std::string& host = place_of(places, rank).host;
    if (host != current && left.contains(host)) {
      return true;
    }
    left.insert(current);
    current = host;
  }
  return false;
}

std::string verdict_on(const std::string& axis, const std::vector<int>& ranks,
                       const std::vector<RankPlace>& places) {
  std::set<std::string> hosts;
  std::set<std::string> spots;
  for (const int rank : ranks) {
    hosts.insert(place_of(places, rank).host);
    spots.insert(spot_of(place_of(places, rank)));
  }
  if (is_interleaved(ranks, places)) {
    return "ranks of a host are not consecutive, so sums cannot be formed inside hosts first: "
           "start with mpirun --map-by core or srun --distribution=block";
  }
  if (hosts.size() > 1 && axis == "tp") {
    return "crosses hosts in every layer: start a multiple of tp ranks per host, or lower "
           "parallel.tp";
  }
  if (hosts.size() == 1 && spots.size() > 1 && axis == "tp") {
    return "crosses sockets in every layer: bind ranks by socket, or lower parallel.tp";
  }
  if (hosts.size() > 1) {
    return hosts.size() == ranks.size()
               ? "one rank per host: all traffic crosses the network"
               : fmt::format("{} hosts: inside them first, then between them", hosts.size());
  }
  return spots.size() > 1 ? "one host, across sockets" : "one host: shared memory";
}

std::vector<int> group_of(const ProcessGrid& grid, const std::string& axis, int rank) {
  const int n = axis == "dp" ? grid.dp() : axis == "tp" ? grid.tp() : grid.pp();
  std::vector<int> ranks;
  for (int i = 0; i < n; ++i) {
    ranks.push_back(grid.rank_at(axis == "dp" ? i : grid.dp_rank(rank),
                                 axis == "tp" ? i : grid.tp_rank(rank),
                                 axis == "pp" ? i : grid.pp_rank(rank)));
  }
  return ranks;
}

}  // namespace

std::string describe_group(const std::string& axis, const std::vector<int>& ranks,
                           const std::vector<RankPlace>& places) {
  check(!ranks.empty(), "a group has ranks");
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::string spot = spot_of(place_of(places, ranks[i]));
    std::vector<int> together;
    for (; i < ranks.size() && spot_of(place_of(places, ranks[i])) == spot; ++i) {
      together.push_back(ranks[i]);
    }
    parts.push_back(fmt::format("{} ({})", spot, list_of(together)));
  }
  return fmt::format("{} group of ranks {}: {}: {}", axis, list_of(ranks), fmt::join(parts, "; "),
                     verdict_on(axis, ranks, places));
}

std::vector<std::string> describe_placement(const ProcessGrid& grid,
                                            const std::vector<RankPlace>& places) {
  std::vector<std::string> lines = {
      fmt::format("world {} = pp {} x dp {} x tp {}; rank = (pp_rank * dp + dp_rank) * tp + "
                  "tp_rank: tensor-parallel ranks, which communicate in every layer, are "
                  "neighbours; replicas, which communicate once per step, come next; pipeline "
                  "stages, which pass on activations, are farthest apart",
                  grid.world_size(), grid.pp(), grid.dp(), grid.tp())};
  for (const std::string axis : {"tp", "dp", "pp"}) {
    for (int rank = 0; rank < grid.world_size(); ++rank) {
      const std::vector<int> ranks = group_of(grid, axis, rank);
      if (ranks.size() > 1 && ranks.front() == rank) {
        lines.push_back(describe_group(axis, ranks, places));
      }
    }
  }
  return lines;
}

}  // namespace trireme
