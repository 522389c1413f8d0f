#include "src/train/replica_guard.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "mpi/agreement.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

struct NamedDigest {
  std::string name;
  std::int64_t digest = 0;
};

bool is_whole(const Parameter& parameter) { return parameter.shape() == parameter.place.whole; }

// Of the parameters that the ranks of a group hold alike, in the same order on each. whole: only of
// those that are not cut.
std::vector<NamedDigest> digests_of(Engine& engine, bool whole) {
  std::vector<NamedDigest> digests;
  for (const auto& chunk : engine.chunks()) {
    if (chunk->state.layout().level() == 3) {
      continue;
    }
    chunk->state.parameters().settle();
    const ParameterStore& store = chunk->parameters;
    for (ParameterId id = 0; id < store.count(); ++id) {
      if (!whole || is_whole(store[id])) {
        const View values = store.compute(id);
        digests.push_back(
            {store[id].name, static_cast<std::int64_t>(xxh3(values.data, values.bytes()))});
      }
    }
  }
  return digests;
}

// Ranks that hold the same, and what they are called in the world.
struct Axis {
  Communicator& group;
  std::string_view name;
  std::vector<int> world_ranks;
};

// "rank 2 (host b)", or of a tie "one of rank 0 (host a), rank 1 (host b)".
std::string culprits(const std::vector<std::int64_t>& digests, const Axis& axis) {
  std::map<std::int64_t, int> votes;
  for (const std::int64_t digest : digests) {
    ++votes[digest];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool decided = 2 * most->second > axis.group.size();
  std::vector<std::string> named;
  for (int rank = 0; rank < axis.group.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (!decided || digests[r] != most->first) {
      named.push_back(fmt::format("rank {} (host {})", axis.world_ranks[r], axis.group.host(rank)));
    }
  }
  return fmt::format("{}{}", decided ? "" : "one of ", fmt::join(named, ", "));
}

// What differs between the ranks of the axis; empty if nothing does.
std::string fault_in(const Axis& axis, const std::vector<NamedDigest>& own) {
  Communicator& group = axis.group;
  const std::size_t count = own.size();
  if (group.size() == 1 || count == 0) {
    return "";
  }
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(group.size()));
  for (std::size_t i = 0; i < count; ++i) {
    all[static_cast<std::size_t>(group.rank()) * count + i] = own[i].digest;
  }
  group.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::i64, {}}).wait();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> digests;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(group.size()); ++rank) {
      digests.push_back(all[rank * count + i]);
    }
    if (std::any_of(digests.begin(), digests.end(),
                    [&](std::int64_t digest) { return digest != digests.front(); })) {
      return fmt::format("{} of the {} group differs in {}", culprits(digests, axis), axis.name,
                         own[i].name);
    }
  }
  return "";
}

Axis dp_axis(Engine& engine) {
  const ProcessGrid& grid = engine.layout().grid;
  const int own = engine.world().rank();
  Axis axis{engine.dp(), "dp", {}};
  for (int i = 0; i < grid.dp(); ++i) {
    axis.world_ranks.push_back(grid.rank_at(i, grid.tp_rank(own), grid.pp_rank(own)));
  }
  return axis;
}

Axis tp_axis(Engine& engine) {
  const ProcessGrid& grid = engine.layout().grid;
  const int own = engine.world().rank();
  Axis axis{engine.tp(), "tp", {}};
  for (int i = 0; i < grid.tp(); ++i) {
    axis.world_ranks.push_back(grid.rank_at(grid.dp_rank(own), i, grid.pp_rank(own)));
  }
  return axis;
}

}  // namespace

void compare_replicas(Engine& engine, std::int64_t step) {
  std::string fault = fault_in(dp_axis(engine), digests_of(engine, false));
  if (fault.empty()) {
    fault = fault_in(tp_axis(engine), digests_of(engine, true));
  }
  if (const std::string faults = gather_faults(engine.world(), fault); !faults.empty()) {
    throw DeviceError(fmt::format(
        "ranks that should hold the same parameters do not, after step {}: {}. A processor, its "
        "memory or the network changed bits: drain the node, check it, and go on from a "
        "checkpoint of an earlier step",
        step, faults));
  }
}

}  // namespace trireme
