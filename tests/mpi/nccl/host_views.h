// HostViews lets cases that keep their data on the host run over a communicator for devices: every
// operation copies its data to the device before and back after. The results are on the host when
// somebody has waited for the operation.
#pragma once

#include <memory>
#include <vector>

#include "mpi/communicator.h"
#include "src/device/cuda_device.h"
#include "src/device/pool.h"

namespace trireme {

class HostViews : public Communicator {
 public:
  HostViews(std::unique_ptr<Communicator> inner, Device device)
      : Communicator(inner->members()),
        inner_(std::move(inner)),
        pool_(device, cuda::device_memory(device.index)),
        stream_(device, 1, cuda::make_queue(device.index)) {
    inner_->prepare_transfers();
  }

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override {
    return std::make_unique<HostViews>(inner_->split(color, key, name), stream_.device());
  }
  void set_sum_order(SumOrder order) override { inner_->set_sum_order(order); }
  void set_deadline(std::chrono::duration<double> deadline) override {
    inner_->set_deadline(deadline);
  }

 private:
  // Copied is an operation whose result is copied to the host once.
  class Copied : public Pending::Operation {
   public:
    Copied(Stream& stream, Pending inner, std::vector<Buffer> buffers, View from, View to)
        : stream_(stream),
          inner_(std::move(inner)),
          buffers_(std::move(buffers)),
          from_(from),
          to_(to) {}
    bool reached() override { return inner_.done(); }
    void wait() override {
      inner_.wait();
      if (!std::exchange(is_copied_, true) && !to_.empty()) {
        stream_.copy(to_, from_);
        stream_.synchronize();
      }
    }
    void abandon() noexcept override { inner_.abandon(); }

   private:
    Stream& stream_;
    Pending inner_;
    std::vector<Buffer> buffers_;
    View from_;
    View to_;
    bool is_copied_ = false;
  };

  View on_device(const ConstView& host, std::vector<Buffer>& buffers) {
    buffers.push_back(pool_.allocate(host.bytes()));
    View view = buffers.back().view(host.dtype);
    view.count = host.count;
    stream_.copy(view, host);
    return view;
  }

  Pending start(const OperationRequest& r) override {
    std::vector<Buffer> buffers;
    const View from = on_device(r.from, buffers);
    const bool in_place = r.into.data == r.from.data;
    const View into = in_place || r.into.empty() ? from : on_device(r.into, buffers);
    stream_.synchronize();
    Pending pending = start_inner(r, from, into);
    const View to = r.kind == OperationKind::send ? View{} : r.into;
    return Pending(
        std::make_shared<Copied>(stream_, std::move(pending), std::move(buffers), into, to));
  }

  Pending start_inner(const OperationRequest& r, const View& from, const View& into) {
    switch (r.kind) {
      case OperationKind::all_reduce:
        return inner_->all_reduce(from, into, r.op);
      case OperationKind::reduce_scatter:
        return inner_->reduce_scatter(into, r.op);
      case OperationKind::all_gather:
        return inner_->all_gather(into);
      case OperationKind::all_to_all:
        return inner_->all_to_all(from, r.send_counts, into, r.recv_counts);
      case OperationKind::broadcast:
        return inner_->broadcast(into, r.peer);
      case OperationKind::send:
        return inner_->send(from, r.peer, r.tag);
      case OperationKind::recv:
        return inner_->recv(into, r.peer, r.tag);
      case OperationKind::barrier:
        break;
    }
    return inner_->barrier();
  }

  std::unique_ptr<Communicator> inner_;
  Pool pool_;
  Stream stream_;
};

}  // namespace trireme
