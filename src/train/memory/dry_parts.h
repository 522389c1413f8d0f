// What a step needs when nothing is computed and nothing is kept (dry_step.h): kernels that do
// nothing, memory that has sizes but no bytes, ranks that are not there. Whoever holds them uses
// them in one thread.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "mpi/communicator.h"
#include "src/kernels/kernels.h"
#include "src/nn/parameter_residence.h"
#include "src/parallel/zero_layout.h"

namespace trireme {

// Every entry returns at once and touches nothing.
const Kernels& no_kernels();

// Hands the same few bytes out to everybody: what is taken may be counted, and read up to
// `readable` bytes (zeros), but not written to.
class DryMemory : public MemorySource {
 public:
  explicit DryMemory(std::int64_t readable);
  void* take(std::int64_t) override;
  void give_back(void*, std::int64_t) noexcept override {}
  // What everybody is given.
  const void* zeros() const { return aligned_; }

 private:
  struct Free {
    void operator()(void* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<void, Free> bytes_;
  void* aligned_ = nullptr;
};

// One rank of a group whose others are not there. Operations move nothing.
class DryCommunicator : public Communicator {
 public:
  // When operations are found to be done: at once, or not before somebody waits for them.
  enum class Done : std::uint8_t { at_once, when_waited_for };
  DryCommunicator(int rank, int size, Done done);

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder) override {}
  void set_deadline(std::chrono::duration<double>) override {}

 private:
  Pending start(const OperationRequest&) override;

  Done done_;
};

// The computes of a store, none of which are there; at level 3 takes and gives back the buckets
// that ZeroParameters would gather.
class DryParameters : public ParameterResidence {
 public:
  // Takes the place of store.allocate(). All outlive this.
  DryParameters(ParameterStore& store, const ZeroLayout& layout, Pool& shared_pool);

  void need(ParameterId first, ParameterId end) override;
  void prefetch(ParameterId first, ParameterId end) override;
  void release(ParameterId first, ParameterId end) override;

  // The most bytes of gathered buckets at one time.
  std::int64_t peak_gathered_bytes() const { return peak_bytes_; }

 private:
  struct Home {
    Buffer whole;  // while it is gathered
    int users = 0;
    bool wanted = false;
  };
  Home& home(int bucket) { return homes_[static_cast<std::size_t>(bucket)]; }
  void bring(int bucket);

  ParameterStore& store_;
  const ZeroLayout& layout_;
  Pool& shared_pool_;
  std::vector<Home> homes_;
  std::int64_t bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace trireme
