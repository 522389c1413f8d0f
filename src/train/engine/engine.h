// Engine: what computes steps on this rank: the groups it belongs to, its chunks of the model with
// their gradients and optimizer state, and its part of a replica at work. Collective to build; all
// that it is given outlives it. Owned by whoever trains (TrainingParts, a benchmark, a test); one
// thread.
#pragma once

#include <memory>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/watch/flight_recorder.h"
#include "src/parallel/tensor_ranks.h"
#include "src/train/engine/evaluate.h"
#include "src/train/engine/model_chunk.h"
#include "src/train/engine/replica.h"
#include "src/train/run/layout.h"

namespace trireme {

class Engine {
 public:
  struct Tools {
    Communicator& world;  // for messages of the host
    Communicator& data;   // for tensors
    FlightRecorder& recorder;
    DeviceContext& context;    // its exchange memory is data.memory()
    SpanLog* spans = nullptr;  // of what is traced; null: nothing is
  };
  Engine(const RunConfig& config, Layout layout, const Tools& tools);

  const RunConfig& config() const { return config_; }
  const Layout& layout() const { return layout_; }
  Communicator& world() const { return tools_.world; }
  // For tensors: equal parts of all replicas; the parts of a layer; the stages of a pipeline.
  Communicator& dp() const { return *dp_; }
  Communicator& tp() const { return *tp_; }
  Communicator& pp() const { return *pp_; }
  // For messages of the host: the same ranks as dp() and tp(); all ranks of a replica.
  Communicator& dp_control() const { return *dp_control_; }
  Communicator& tp_control() const { return *tp_control_; }
  Communicator& siblings() const { return *siblings_; }
  TensorRanks& group() { return group_; }
  const ModelChunks& chunks() const { return chunks_; }
  DeviceContext& context() const { return tools_.context; }
  // Bytes of this rank's memory that other ranks may map.
  std::int64_t shared_bytes() const {
    const DeviceContext& context = tools_.context;
    return context.exchange().reserved_bytes() + context.exchange_state().reserved_bytes();
  }
  Replica& replica() { return replica_; }
  SpanLog* spans() const { return tools_.spans; }

  // The numbers of this rank's micro-batches within a step of `sequences`, rising.
  std::vector<std::int64_t> micro_batches(std::int64_t sequences) const {
    return layout_.micro_batches_of(tools_.world.rank(), sequences / config_.train.micro_batch);
  }
  // Of all groups.
  void set_deadline(std::chrono::duration<double> deadline);
  // Every parameter as the seed says.
  void initialize(std::uint64_t seed);
  // After masters were loaded.
  void masters_changed();
  // Nats a token; the same on all ranks. DataError or IoError, on all ranks alike, where a rank
  // can't read its samples.
  double evaluate(const Dataset& dataset, const EvaluationPlan& plan);

 private:
  std::unique_ptr<Communicator> data_group(int color, int key, const char* name);
  ModelChunks make_chunks();

  const RunConfig& config_;
  Layout layout_;
  Tools tools_;
  std::unique_ptr<Communicator> dp_;
  std::unique_ptr<Communicator> tp_;
  std::unique_ptr<Communicator> pp_;
  std::unique_ptr<Communicator> dp_control_;
  std::unique_ptr<Communicator> tp_control_;
  std::unique_ptr<Communicator> siblings_;
  TensorRanks group_;
  ModelChunks chunks_;
  Replica replica_;
};

}  // namespace trireme
