// Balances the stages: cuts the model into as many contiguous pieces as there are virtual stages,
// so that the rank with the highest cost has as little as possible. Pure and deterministic
// functions. The units that are never cut are the model's residual layers (two per transformer
// block); the embedding belongs to the first piece and the head to the last, each with a cost of
// its own.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

// UnitRange is the units [lo, hi) of a virtual stage.
struct UnitRange {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t count() const { return hi - lo; }
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

// ModelCosts holds costs per micro-batch, in any one unit; none is negative.
struct ModelCosts {
  std::vector<double> units;
  double embedding = 0;
  double head = 0;
};

// Returns the ranges by virtual stage; no range is empty. With one chunk per rank, no cut has a
// smaller largest sum; with several, a local search finds none. Throws ConfigError, with the
// formula and its numbers, if there are fewer units than virtual stages.
std::vector<UnitRange> balance_stages(const ModelCosts& costs, const PipelineShape& shape);

// Returns the cost of each rank under such a cut, summed over its chunks.
std::vector<double> rank_costs(const ModelCosts& costs, const std::vector<UnitRange>& ranges,
                               int stages);

}  // namespace trireme
