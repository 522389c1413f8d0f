// Scaling curves of a collective: its time on more and more GPUs of a fabric, by each algorithm.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/plan/network/collective_time.h"

namespace trireme {

struct ScalingPlan {
  Fabric fabric;
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 1e9;
  std::int64_t stride = 1;  // distance of the ranks of a group; all such groups run at once
  bool is_scattered = false;
  std::uint64_t seed = 1;
};

struct ScalingPoint {
  std::int64_t gpus = 0;   // of all groups
  std::int64_t ranks = 0;  // of each group
  std::vector<CollectiveTime> times;
};

// Returns points from one node (or the GPUs of a stride) to the whole fabric, doubling the number
// of GPUs. Throws ConfigError if the stride does not fit the nodes.
std::vector<ScalingPoint> collective_scaling(const ScalingPlan& plan);

std::string to_text(const ScalingPlan& plan, const std::vector<ScalingPoint>& points);
nlohmann::ordered_json to_json(const ScalingPlan& plan, const std::vector<ScalingPoint>& points);
// Draws the bus bandwidth of each algorithm over the number of GPUs.
std::string to_svg(const ScalingPlan& plan, const std::vector<ScalingPoint>& points);

}  // namespace trireme
