// Lists every schedule with each small shape that it supports.
#pragma once

#include <string>
#include <vector>

#include <fmt/core.h>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

struct GridPoint {
  PipelineSchedule schedule;
  PipelineShape shape;
  std::string text() const {
    return fmt::format("{} p {} v {} m {}{}", name_of(schedule), shape.stages, shape.chunks,
                       shape.micro_batches, shape.tied ? " tied" : "");
  }
};

inline std::vector<GridPoint> schedule_grid(int most_stages = 8,
                                            std::int64_t most_micro_batches = 16) {
  std::vector<GridPoint> grid;
  for (const std::string& name : pipeline_schedule_names()) {
    const PipelineSchedule schedule = parse_pipeline_schedule(name);
    const bool chunked = schedule == PipelineSchedule::interleaved;
    for (int p = 1; p <= most_stages; ++p) {
      for (int v = chunked ? 2 : 1; v <= (chunked ? 4 : 1); ++v) {
        for (std::int64_t m = 1; m <= most_micro_batches; ++m) {
          if (!chunked || m % p == 0) {
            grid.push_back({schedule, {p, v, m, false}});
            grid.push_back({schedule, {p, v, m, true}});
          }
        }
      }
    }
  }
  return grid;
}

}  // namespace trireme
