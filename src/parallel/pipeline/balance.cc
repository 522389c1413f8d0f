#include "src/parallel/pipeline/balance.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// cuts[k] is where piece k begins; the last entry is the number of units.
using Cuts = std::vector<std::int64_t>;

// Up to this number of pieces, two moves at a time are tried; their number grows with its fourth
// power.
constexpr int kFewPieces = 16;

class Balance {
 public:
  Balance(const ModelCosts& costs, const PipelineShape& shape)
      : costs_(costs),
        pieces_(shape.virtual_stages()),
        stages_(shape.stages),
        units_(static_cast<std::int64_t>(costs.units.size())) {
    sums_.push_back(0);
    for (const double cost : costs.units) {
      sums_.push_back(sums_.back() + cost);
    }
    // A rank's extra cost is divided equally among its pieces, because only their sum matters.
    for (int rank = 0; rank < stages_; ++rank) {
      extras_.push_back(extra(rank) * stages_ / pieces_);
    }
  }

  Cuts solve() {
    Cuts cuts = smallest_largest_piece();
    while (improve(cuts, 1) || (pieces_ <= kFewPieces && improve(cuts, 2))) {
    }
    return cuts;
  }

  std::vector<double> loads(const Cuts& cuts) const {
    std::vector<double> loads;
    for (int rank = 0; rank < stages_; ++rank) {
      loads.push_back(load(cuts, rank));
    }
    return loads;
  }

 private:
  // Returns the cost of the embedding and the head for a rank that has them.
  double extra(int rank) const {
    return (rank == 0 ? costs_.embedding : 0) + (rank == stages_ - 1 ? costs_.head : 0);
  }

  double load(const Cuts& cuts, int rank) const {
    double sum = 0;
    for (auto k = static_cast<std::size_t>(rank); k + 1 < cuts.size();
         k += static_cast<std::size_t>(stages_)) {
      sum += sums_[static_cast<std::size_t>(cuts[k + 1])] -
             sums_[static_cast<std::size_t>(cuts[k])] + extras_[static_cast<std::size_t>(rank)];
    }
    return sum;
  }

  // Minimizes the largest piece, by dynamic programming. best[n]: the cost of the largest of pieces
  // 0..k in the best cut of the first n units; from[k][n]: where piece k begins in that cut.
  Cuts smallest_largest_piece() const {
    const auto width = static_cast<std::size_t>(units_ + 1);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    std::vector<double> before(width, kNone);
    before[0] = 0;
    std::vector<Cuts> from;
    for (int k = 0; k < pieces_; ++k) {
      std::vector<double> best(width, kNone);
      from.emplace_back(width, 0);
      const double more = extras_[static_cast<std::size_t>(k % stages_)];
      const auto first = static_cast<std::size_t>(k);
      for (std::size_t n = first + 1; n < width; ++n) {
        for (std::size_t lo = first; lo < n; ++lo) {
          const double largest = std::max(before[lo], sums_[n] - sums_[lo] + more);
          if (largest < best[n]) {
            best[n] = largest;
            from.back()[n] = static_cast<std::int64_t>(lo);
          }
        }
      }
      before = std::move(best);
    }
    Cuts cuts(static_cast<std::size_t>(pieces_) + 1, units_);
    for (auto k = static_cast<std::size_t>(pieces_); k-- > 0;) {
      cuts[k] = from[k][static_cast<std::size_t>(cuts[k + 1])];
    }
    return cuts;
  }

  // Returns the loads from the largest to the smallest: cuts are compared by it, and smaller is
  // better.
  std::vector<double> key(const Cuts& cuts) const {
    std::vector<double> sorted = loads(cuts);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    return sorted;
  }

  // Returns whether the loads from the largest to the smallest are before `best`, which is sorted
  // so. The first few decide.
  static bool is_better(const std::vector<double>& loads, const std::vector<double>& best) {
    const double most = *std::max_element(loads.begin(), loads.end());
    if (most != best.front()) {
      return most < best.front();
    }
    std::vector<double> heap = loads;
    std::make_heap(heap.begin(), heap.end());
    auto end = heap.end();
    for (const double other : best) {
      if (heap.front() != other) {
        return heap.front() < other;
      }
      std::pop_heap(heap.begin(), end--);
    }
    return false;
  }

  // Looks for a better cut within `moves` moves. One move shifts some neighbouring cuts by one unit
  // to the left or right, which passes one unit of load from one rank to another, however far
  // apart.
  void explore(const Cuts& from, int moves, Cuts& best, std::vector<double>& best_key) const {
    const std::vector<double> loads_before = loads(from);
    for (std::size_t first = 1; first + 1 < from.size(); ++first) {
      for (const int by : {-1, 1}) {
        Cuts moved = from;
        std::vector<double> moved_loads = loads_before;
        for (std::size_t last = first; last + 1 < from.size(); ++last) {
          moved[last] += by;  // changes the pieces before and after it
          for (const std::size_t k : {last - 1, last}) {
            const int rank = static_cast<int>(k) % stages_;
            moved_loads[static_cast<std::size_t>(rank)] = load(moved, rank);
          }
          if (moved[first] <= moved[first - 1]) {
            break;  // the cuts behind do not change that
          }
          if (moved[last] >= moved[last + 1]) {
            continue;
          }
          if (is_better(moved_loads, best_key)) {
            best_key = key(moved);
            best = moved;
          }
          if (moves > 1) {
            explore(moved, moves - 1, best, best_key);
          }
        }
      }
    }
  }

  // Returns false if no cut within `moves` moves is better.
  bool improve(Cuts& cuts, int moves) const {
    Cuts best = cuts;
    std::vector<double> best_key = key(cuts);
    explore(cuts, moves, best, best_key);
    std::swap(cuts, best);
    return cuts != best;
  }

  const ModelCosts& costs_;
  int pieces_;
  int stages_;
  std::int64_t units_;
  std::vector<double> sums_;    // sums_[n]: cost of the first n units
  std::vector<double> extras_;  // of a rank, for each of its pieces
};

// Names the nearest shapes that a model of this depth allows.
std::string shapes_that_fit(std::int64_t units, const PipelineShape& shape) {
  std::vector<std::string> fit;
  if (shape.chunks > 1 && units / shape.stages >= 2) {
    fit.push_back(fmt::format("parallel.virtual_stages {}", units / shape.stages));
  } else if (shape.chunks > 1 && units >= shape.stages) {
    fit.push_back("parallel.virtual_stages 1 with the schedule 1f1b");
  }
  if (units / shape.chunks >= 2) {
    fit.push_back(fmt::format("parallel.pp {}", units / shape.chunks));
  }
  fit.push_back("a deeper model");
  return fmt::format("{}", fmt::join(fit, ", or "));
}

void check_enough(std::int64_t units, const PipelineShape& shape) {
  if (units < shape.virtual_stages()) {
    throw ConfigError(fmt::format(
        "{} pipeline stages x {} virtual stages per rank = {}, more than the model's {} residual "
        "layers (two per transformer block): use {}",
        shape.stages, shape.chunks, shape.virtual_stages(), units, shapes_that_fit(units, shape)));
  }
}

}  // namespace

std::vector<UnitRange> balance_stages(const ModelCosts& costs, const PipelineShape& shape) {
  check(shape.stages > 0 && shape.chunks > 0, "a pipeline has stages");
  check_enough(static_cast<std::int64_t>(costs.units.size()), shape);
  const Cuts cuts = Balance(costs, shape).solve();
  std::vector<UnitRange> ranges;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    ranges.push_back({cuts[k], cuts[k + 1]});
  }
  return ranges;
}

std::vector<double> rank_costs(const ModelCosts& costs, const std::vector<UnitRange>& ranges,
                               int stages) {
  PipelineShape shape;
  shape.stages = stages;
  shape.chunks = static_cast<int>(ranges.size()) / stages;
  Cuts cuts;
  for (const UnitRange& range : ranges) {
    cuts.push_back(range.lo);
  }
  cuts.push_back(ranges.empty() ? 0 : ranges.back().hi);
  return Balance(costs, shape).loads(cuts);
}

}  // namespace trireme
