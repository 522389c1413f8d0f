// TensorRanks is the tensor-parallel group of a rank, over a communicator. Sums are formed in place
// and in tree order, so that every rank gets the same bits. Owned by the engine, used by its
// thread; the communicator and the context, whose exchange memory should be the communicator's,
// outlive it.
#pragma once

#include <deque>

#include "mpi/communicator.h"
#include "src/compute/device_context.h"
#include "src/compute/stream_seconds.h"
#include "src/nn/tensor_group.h"
#include "src/trace/span_log.h"

namespace trireme {

class TensorRanks : public TensorGroup {
 public:
  // spans: log for the time spent waiting; null for none.
  TensorRanks(Communicator& tp, DeviceContext& context, SpanLog* spans = nullptr)
      : tp_(tp), context_(context), spans_(spans) {}
  ~TensorRanks() override;
  TensorRanks(const TensorRanks&) = delete;
  TensorRanks& operator=(const TensorRanks&) = delete;

  int rank() const override { return tp_.rank(); }
  int size() const override { return tp_.size(); }
  Pool& pool() override { return context_.exchange(); }
  Exchange start_sum(View data) override;
  Exchange start_scatter_sum(View data) override;
  Exchange start_gather(View data) override;
  void finish(Exchange exchange) override;

  // Returns the time that the stream waited (exposed communication). Whoever reads it also clears
  // it.
  StreamSeconds& waited() { return waited_; }

 private:
  Exchange add(Pending pending);

  Communicator& tp_;
  DeviceContext& context_;
  SpanLog* spans_;
  std::deque<Pending> under_way_;  // operations in flight; the last one has number started_
  Exchange started_ = 0;
  StreamSeconds waited_;
};

}  // namespace trireme
