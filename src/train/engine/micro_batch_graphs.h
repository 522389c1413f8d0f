// MicroBatchGraphs holds the FlightGraphs of a rank: for each chunk, as many as micro-batches are
// in flight there at a time. Owned by Replica; used by its thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/train/engine/flight_graphs.h"
#include "src/train/run/layout.h"

namespace trireme {

// Returns why forward and backward of micro-batches are not recorded as graphs; empty if they are.
std::string why_no_graphs(const RunConfig& config, const Layout& layout, Device device);

class MicroBatchGraphs {
 public:
  // The arguments outlive this.
  MicroBatchGraphs(const ModelChunks& chunks, TensorGroup& group, DeviceContext& context,
                   const ModelConfig& model);

  // Returns the graphs of a chunk that no micro-batch in flight has: those that were made first.
  FlightGraphs& idle(int chunk);
  // Called before each step. Forgets what a step that failed has left behind.
  void begin_step();

  std::int64_t activation_bytes() const;
  std::int64_t exchanged_bytes() const;

 private:
  const ModelChunks& chunks_;
  TensorGroup& group_;
  DeviceContext& context_;
  bool drops_;
  std::vector<std::vector<std::unique_ptr<FlightGraphs>>> flights_;  // by chunk
};

}  // namespace trireme
