// TensorRanks: the tensor-parallel group of a rank, over a communicator. Sums are taken in tree
// order, in place; every rank gets the same bits. Owned by the training loop, used by its thread;
// the communicator, the stream and the pool, which should be of the
// communicator's memory(), outlive it.
#pragma once

#include <deque>

#include "mpi/communicator.h"
#include "src/base/stopwatch.h"
#include "src/nn/tensor_group.h"
#include "src/trace/span_log.h"

namespace trireme {

class TensorRanks : public TensorGroup {
 public:
  // stream: that the layers' work is queued on. spans: where waiting is noted; null: nowhere.
  TensorRanks(Communicator& tp, Pool& pool, Stream& stream, SpanLog* spans = nullptr)
      : tp_(tp), pool_(pool), stream_(stream), spans_(spans) {}
  ~TensorRanks() override;
  TensorRanks(const TensorRanks&) = delete;
  TensorRanks& operator=(const TensorRanks&) = delete;

  int rank() const override { return tp_.rank(); }
  int size() const override { return tp_.size(); }
  Pool& pool() override { return pool_; }
  Exchange start_sum(View data) override;
  Exchange start_scatter_sum(View data) override;
  Exchange start_gather(View data) override;
  void finish(Exchange exchange) override;

  // How long calls have waited since the last take: exposed communication.
  double take_waited_seconds();

 private:
  Exchange add(Pending pending);

  Communicator& tp_;
  Pool& pool_;
  Stream& stream_;
  SpanLog* spans_;
  std::deque<Pending> under_way_;  // the last one is number started_
  Exchange started_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace trireme
