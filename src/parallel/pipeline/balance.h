// Stage balance: cuts the model into as many contiguous pieces as there are virtual stages, so that
// the rank with most to do has as little as possible. Pure and deterministic. The units that are
// never cut are the model's residual layers (two a transformer layer); the embedding goes with the
// first piece, the head with the last, each at a cost of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

// Units [lo, hi) of a virtual stage.
struct UnitRange {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t count() const { return hi - lo; }
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

// Costs of a micro-batch, in any one unit, none negative.
struct ModelCosts {
  std::vector<double> units;
  double embedding = 0;
  double head = 0;
};

// By virtual stage; no range is empty. With one chunk a rank no cut has a smaller largest sum; with
// several, a local search finds none. ConfigError, with the
// formula and its numbers, for fewer units than virtual stages.
std::vector<UnitRange> balance_stages(const ModelCosts& costs, const PipelineShape& shape);

// What each rank has to do under such a cut, its chunks added up.
std::vector<double> rank_costs(const ModelCosts& costs, const std::vector<UnitRange>& ranges,
                               int stages);

}  // namespace trireme
