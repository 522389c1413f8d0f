// Engine computes training steps on this rank: it holds the rank's groups, its chunks of the model
// with their gradients and optimizer state, and its part of a replica. The constructor is
// collective; the configuration and what the tools refer to outlive the engine. Owned by
// TrainingParts, a benchmark, a prediction of memory or a test; one thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/watch/flight_recorder.h"
#include "src/parallel/tensor_ranks.h"
#include "src/train/engine/evaluate.h"
#include "src/train/engine/fp8_scaling.h"
#include "src/train/engine/model_chunk.h"
#include "src/train/engine/replica.h"
#include "src/train/engine/teacher.h"
#include "src/train/run/layout.h"

namespace trireme {

class Engine {
 public:
  struct Tools {
    Communicator& world;  // for messages of the host
    Communicator& data;   // for tensors
    FlightRecorder& recorder;
    DeviceContext& context;    // its exchange memory is data.memory()
    SpanLog* spans = nullptr;  // log for traced steps; null for none
  };
  Engine(const RunConfig& config, Layout layout, const Tools& tools);

  const RunConfig& config() const { return config_; }
  const Layout& layout() const { return layout_; }
  Communicator& world() const { return tools_.world; }
  // Groups for tensors: ranks with the same part in all replicas, with the parts of one layer, and
  // with the stages of one pipeline.
  Communicator& dp() const { return *dp_; }
  Communicator& tp() const { return *tp_; }
  Communicator& pp() const { return *pp_; }
  // Groups for messages of the host: the same ranks as dp() and tp(), and all ranks of a replica.
  Communicator& dp_control() const { return *dp_control_; }
  Communicator& tp_control() const { return *tp_control_; }
  Communicator& siblings() const { return *siblings_; }
  TensorRanks& group() { return group_; }
  const ModelChunks& chunks() const { return chunks_; }
  // Returns the model from which this rank's head learns; null if there is none.
  const Teacher* teacher() const { return teacher_.get(); }
  DeviceContext& context() const { return tools_.context; }
  // Returns the bytes of this rank's memory that other ranks may map.
  std::int64_t shared_bytes() const {
    const DeviceContext& context = tools_.context;
    return context.exchange().reserved_bytes() + context.exchange_state().reserved_bytes() +
           (graphs() == nullptr ? 0 : graphs()->exchanged_bytes());
  }
  Replica& replica() { return replica_; }
  const MicroBatchGraphs* graphs() const { return replica_.graphs(); }
  Fp8Scaling& fp8() { return fp8_; }
  // Lets the next update start only after this event: until then, weights and optimizer state are
  // being copied.
  void hold_update(StreamEvent until) { hold_ = std::move(until); }
  // Makes the stream wait for what holds the update, and forgets it.
  void pass_hold() { context().stream().wait(std::exchange(hold_, {})); }
  SpanLog* spans() const { return tools_.spans; }

  // Returns the numbers of this rank's micro-batches within a step of `sequences`, rising.
  std::vector<std::int64_t> micro_batches(std::int64_t sequences) const {
    return layout_.micro_batches_of(tools_.world.rank(), sequences / config_.train.micro_batch);
  }
  // Sets the deadline of all groups, including both that have all ranks.
  void set_deadline(std::chrono::duration<double> deadline);
  // Sets all parameters to their initial values for the seed; without with_frozen, frozen ones keep
  // what was loaded. Collective.
  void initialize(std::uint64_t seed, bool with_frozen = true);
  // Updates what depends on the masters after a load. Collective.
  void masters_changed();
  // Returns the mean loss in nats per token, the same on all ranks. Throws DataError or IoError, on
  // all ranks alike, if a rank cannot read its samples. Collective.
  double evaluate(const Dataset& dataset, const EvaluationPlan& plan);

 private:
  std::unique_ptr<Communicator> data_group(int color, int key, const char* name);
  ModelChunks make_chunks();
  std::unique_ptr<Teacher> make_teacher();

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
  Fp8Scaling fp8_;
  std::unique_ptr<Teacher> teacher_;
  Replica replica_;
  StreamEvent hold_;
};

}  // namespace trireme
