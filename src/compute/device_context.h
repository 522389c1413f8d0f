// DeviceContext holds everything with which a program computes on one device: the kernel table, the
// stream that orders work, and the pools of memory. A program has one per device and thread of
// work. The engine, generate, eval, the benchmarks and the health check take it by reference, and
// it outlives them. One thread.
//
//   pool              holds                                       shared with other ranks
//   activations       tensors that live for a step at most        no
//   exchange          those of them that ranks exchange           yes
//   state             parameters, gradients, optimizer state      no
//   exchange_state    those of them that ranks exchange           yes
//   staging           memory of the host that the device copies   no
//                     to and from while the host computes
#pragma once

#include <memory>
#include <vector>

#include "src/device/pool.h"
#include "src/device/stream.h"
#include "src/kernels/kernels.h"

namespace trireme {

class DeviceContext {
 public:
  // threads: how many a kernel uses on the CPU. exchange: the memory that other ranks read without
  // a copy, Communicator::memory(); it outlives the context. Throws ConfigError if this program is
  // built without a back end for the device.
  DeviceContext(Device device, int threads);
  DeviceContext(Device device, int threads, MemorySource& exchange);
  // Computes on the device with a table for it that the caller chooses.
  DeviceContext(Device device, const Kernels& kernels, int threads, MemorySource& exchange);
  // Computes on the CPU with a kernel table that the caller chooses.
  DeviceContext(const Kernels& kernels, int threads, MemorySource& exchange = host_memory());
  // Computes like `other`, on the same stream, with pools of its own. `other` outlives it.
  struct Beside {
    DeviceContext& other;
  };
  explicit DeviceContext(Beside beside);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  Device device() const { return stream_.device(); }
  int threads() const { return stream_.threads(); }
  const Kernels& kernels() const { return kernels_; }
  Stream& stream() { return stream_; }
  Pool& activations() { return activations_; }
  Pool& exchange() { return exchange_; }
  Pool& state() { return state_; }
  Pool& exchange_state() { return exchange_state_; }
  Pool& staging() { return staging_; }
  const Pool& activations() const { return activations_; }
  const Pool& exchange() const { return exchange_; }
  const Pool& state() const { return state_; }
  const Pool& exchange_state() const { return exchange_state_; }
  const Pool& staging() const { return staging_; }

  // Returns whether kernels accept views of the host's memory. Always true for a counting device,
  // which stands for the CPU.
  bool kernels_read_host_memory() const { return device().kind != DeviceKind::cuda; }

  // Waits for all work so far and returns the elements; zeros from a counting device.
  template <class T>
  std::vector<T> read(const ConstView& view) {
    std::vector<T> elements(static_cast<std::size_t>(view.count));
    stream_.copy({elements.data(), view.count, dtype_of<T>()}, view);
    stream_.synchronize();
    return elements;
  }
  // Waits for all work so far and calls make(T*), which sets view.count elements on the host; the
  // view holds them before later work on the stream starts. Does nothing on a counting device.
  template <class T, class Make>
  void write(const View& view, Make make) {
    if (device().kind == DeviceKind::counting || view.count == 0) {
      return;
    }
    stream_.synchronize();
    if (view.device.is_host()) {
      make(as<T>(view));
      return;
    }
    // Not cleared first, so that the threads of `make` share the work of mapping its pages.
    const auto elements = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(view.count));
    make(elements.get());
    stream_.copy(view, {elements.get(), view.count, dtype_of<T>()});
    stream_.synchronize();
  }

 private:
  const Kernels& kernels_;
  Stream stream_;
  Pool activations_;
  Pool exchange_;
  Pool state_;
  Pool exchange_state_;
  Pool staging_;
};

}  // namespace trireme
