#include "src/train/watch/replica_guard.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "mpi/agreement.h"
#include "mpi/rank_fault.h"
#include "src/base/digest.h"

namespace trireme {
namespace {

// NamedDigest is the digest of one array that a rank holds. Ranks with equal places hold the same
// elements.
struct NamedDigest {
  std::string name;
  std::int64_t place = 0;
  std::int64_t digest = 0;
};

std::int64_t digest_of(const Place& place) {
  std::vector<std::int64_t> numbers = {place.rows.first, place.rows.count};
  for (const IndexRange& columns : place.columns) {
    numbers.insert(numbers.end(), {columns.first, columns.count});
  }
  return static_cast<std::int64_t>(
      xxh3(numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof numbers[0])));
}

// Adds a chunk's working copies and, if each replica holds all of them, its masters and moments.
void name_what_is_held(ModelChunk& chunk, std::vector<NamedDigest>& named,
                       std::vector<View>& views) {
  const int level = chunk.state.layout().level();
  const ParameterStore& store = chunk.parameters;
  const auto add = [&](const std::string& what, ParameterId id, const View& values) {
    named.push_back({what + store[id].name, digest_of(store[id].place), 0});
    views.push_back(values);
  };
  if (level < 3) {
    chunk.state.parameters().settle();
    for (ParameterId id = 0; id < store.count(); ++id) {
      add("", id, store.compute(id));
    }
  }
  if (level == 0) {
    for (const StatePiece& piece : chunk.state.pieces_to_load()) {
      add("", piece.id, piece.value);
      for (std::size_t i = 0; i < piece.states.size(); ++i) {
        add(std::string(piece.state_names[i]) + ".", piece.id, piece.states[i]);
      }
    }
  }
}

// Returns digests in the same order on all ranks of a group.
std::vector<NamedDigest> digests_of(Engine& engine) {
  std::vector<NamedDigest> digests;
  std::vector<View> views;
  for (const auto& chunk : engine.chunks()) {
    name_what_is_held(*chunk, digests, views);
  }
  DeviceContext& context = engine.context();
  const auto count = static_cast<std::int64_t>(views.size());
  const Tensor found(context.activations(), {count}, DType::i64);
  for (std::int64_t i = 0; i < count; ++i) {
    context.kernels().digest(context.stream(), found.view().slice(i, 1),
                             views[static_cast<std::size_t>(i)]);
  }
  const auto values = context.read<std::int64_t>(found.view());
  for (std::size_t i = 0; i < values.size(); ++i) {
    digests[i].digest = values[i];
  }
  return digests;
}

// Axis is a group whose ranks hold the same data, with their ranks in the world.
struct Axis {
  Communicator& group;
  std::string_view name;
  std::vector<int> world_ranks;
};

// Held is the digest that a rank of the axis has.
struct Held {
  int rank = 0;
  std::int64_t digest = 0;
};

// Fault is a difference, and the rank of the world that differs from the majority, or -1 if there
// is no difference or no majority.
struct Fault {
  std::string text;
  int rank = -1;
};

// Returns "rank 2 (host b)", or without a majority "one of rank 0 (host a), rank 1 (host b)".
Fault culprits(const std::vector<Held>& held, const Axis& axis) {
  std::map<std::int64_t, std::size_t> votes;
  for (const Held& each : held) {
    ++votes[each.digest];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool decided = 2 * most->second > held.size();
  std::vector<std::string> named;
  Fault fault;
  for (const Held& each : held) {
    if (!decided || each.digest != most->first) {
      const int rank = axis.world_ranks[static_cast<std::size_t>(each.rank)];
      named.push_back(fmt::format("rank {} (host {})", rank, axis.group.host(each.rank)));
      fault.rank = decided && fault.rank < 0 ? rank : fault.rank;
    }
  }
  fault.text = fmt::format("{}{}", decided ? "" : "one of ", fmt::join(named, ", "));
  return fault;
}

// Returns the first difference between ranks of the axis that should hold the same data.
Fault fault_in(const Axis& axis, const std::vector<NamedDigest>& own) {
  Communicator& group = axis.group;
  const std::size_t count = 2 * own.size();
  if (group.size() == 1 || count == 0) {
    return {};
  }
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(group.size()));
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::int64_t* at = all.data() + static_cast<std::size_t>(group.rank()) * count + 2 * i;
    at[0] = own[i].place;
    at[1] = own[i].digest;
  }
  group.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::i64}).wait();
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::map<std::int64_t, std::vector<Held>> by_place;
    for (int rank = 0; rank < group.size(); ++rank) {
      const std::int64_t* at = all.data() + static_cast<std::size_t>(rank) * count + 2 * i;
      by_place[at[0]].push_back({rank, at[1]});
    }
    for (const auto& [place, held] : by_place) {
      if (std::any_of(held.begin(), held.end(),
                      [&](const Held& each) { return each.digest != held.front().digest; })) {
        Fault fault = culprits(held, axis);
        fault.text =
            fmt::format("{} of the {} group differs in {}", fault.text, axis.name, own[i].name);
        return fault;
      }
    }
  }
  return {};
}

Axis dp_axis(Engine& engine) {
  const ProcessGrid& grid = engine.layout().grid;
  const int own = engine.world().rank();
  Axis axis{engine.dp_control(), "dp", {}};
  for (int i = 0; i < grid.dp(); ++i) {
    axis.world_ranks.push_back(grid.rank_at(i, grid.tp_rank(own), grid.pp_rank(own)));
  }
  return axis;
}

Axis tp_axis(Engine& engine) {
  const ProcessGrid& grid = engine.layout().grid;
  const int own = engine.world().rank();
  Axis axis{engine.tp_control(), "tp", {}};
  for (int i = 0; i < grid.tp(); ++i) {
    axis.world_ranks.push_back(grid.rank_at(grid.dp_rank(own), i, grid.pp_rank(own)));
  }
  return axis;
}

bool holds_twice(const Engine& engine) { return engine.dp().size() > 1 || engine.tp().size() > 1; }

}  // namespace

void reserve_comparison(Engine& engine) {
  if (engine.config().train.compare_every > 0 && holds_twice(engine)) {
    (void)digests_of(engine);
  }
}

void compare_replicas(Engine& engine, std::int64_t step) {
  if (!holds_twice(engine)) {
    return;
  }
  const std::vector<NamedDigest> digests = digests_of(engine);
  // Every rank compares along both axes, since ranks of one dp group may find different results
  // along tp, and vice versa.
  const Fault along_dp = fault_in(dp_axis(engine), digests);
  const Fault along_tp = fault_in(tp_axis(engine), digests);
  // One rank of each group reports its fault.
  const Fault fault = engine.dp().rank() == 0 && !along_dp.text.empty()   ? along_dp
                      : engine.tp().rank() == 0 && !along_tp.text.empty() ? along_tp
                                                                          : Fault{};
  const std::string faults = gather_faults(engine.world(), fault.text);
  if (faults.empty()) {
    return;
  }
  const std::string what = fmt::format(
      "after step {}, ranks that should hold the same parameters do not: {}. A processor, its "
      "memory or the network changed bits: drain the node, check it, and resume from a "
      "checkpoint of an earlier step",
      step, faults);
  const std::int64_t ranks = engine.world().size();
  const std::int64_t rank =
      all_reduce_value(engine.world(), fault.rank < 0 ? ranks : fault.rank, ReduceOp::min);
  if (rank == ranks) {
    throw DeviceError(what);
  }
  throw RankFault(what, static_cast<int>(rank));
}

}  // namespace trireme
