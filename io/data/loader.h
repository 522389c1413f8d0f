// Loader: the micro-batches of one rank, read ahead by threads of its own. What a micro-batch holds
// depends only on the sampler and its place in the run: sample i of micro-batch m of step s is
// number first_sample + S + m * micro_batch + i, where S are the samples of the steps before s, on
// whichever rank it is computed. Borrows the dataset, which must outlive it. next() is called by
// one thread.
//
//   workers --> | filled | filled | ... | being filled |   two steps ahead, in order --> next()
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/data/batch_schedule.h"
#include "io/data/dataset.h"
#include "io/data/sampler.h"
#include "src/device/device.h"

namespace trireme {

// The numbers of one rank's micro-batches within a step of `micro_batches`, in order; at least one.
using MicroBatchNumbers = std::function<std::vector<std::int64_t>(std::int64_t micro_batches)>;

struct LoaderPlan {
  std::int64_t sequence = 0;
  BatchSchedule batches = 1;      // samples of each step, of all ranks
  std::int64_t first_batch = 0;   // number of the first step's batch in that schedule
  std::int64_t micro_batch = 0;   // samples
  MicroBatchNumbers micros = {};  // called by any of the loader's threads, one at a time
  std::int64_t steps = -1;        // how many there will be; below 0: without end
  std::int64_t depth_steps = 2;
  int threads = 1;
};

// Valid until the following next().
struct LoadedMicroBatch {
  std::int64_t first_sample = 0;  // its global number in the run
  std::int64_t batch = 0;
  std::int64_t time = 0;
  ConstView ids;      // i32 [B,T]
  ConstView targets;  // i32 [B,T]: the token that follows each id
};

class Loader {
 public:
  // first_sample: samples consumed before. ConfigError for a plan that does not add up.
  Loader(const Dataset& dataset, const Sampler& sampler, const LoaderPlan& plan,
         std::int64_t first_sample);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next micro-batch, step by step; when it is late, helps the workers to read. Throws
  // what went wrong in reading it.
  const LoadedMicroBatch& next();
  // How long next() has waited so far, in all.
  std::chrono::duration<double> wait_time() const { return waited_; }

 private:
  struct Slot {
    LoadedMicroBatch batch;
    std::vector<std::int32_t> ids;      // [B,T]
    std::vector<std::int32_t> targets;  // [B,T]
    bool filled = false;
    std::exception_ptr error;
  };
  struct Worker;
  // The position of the next ticket in the data.
  struct Cursor {
    std::int64_t batch = 0;            // of the schedule
    std::int64_t first_sample = 0;     // of the batch
    std::vector<std::int64_t> micros;  // this rank's in the batch
    std::size_t micro = 0;             // index into them
  };

  void work();
  // Claims the next ticket and fills its slot; the lock is released meanwhile.
  void fill_next(std::unique_lock<std::mutex>& lock, Worker& worker);
  // first_sample: of the slot's micro-batch.
  void fill(std::int64_t first_sample, Slot& slot, Worker& worker) const;
  // Advances the cursor; returns the first sample of the micro-batch that it stood at.
  std::int64_t claim_micro_batch();
  std::vector<std::int64_t> micros_of(std::int64_t batch_samples) const;
  bool all_claimed() const { return cursor_.batch == end_batch_; }
  Slot& slot_of(std::int64_t ticket) {
    return slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  }
  bool may_claim() const;
  void wake_worker();

  const Dataset& dataset_;
  Sampler sampler_;
  SampleIndex index_;
  LoaderPlan plan_;
  std::int64_t end_batch_;  // the batch behind the last step's; the largest integer without end

  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::condition_variable slot_filled_;
  std::vector<Slot> slots_;
  Cursor cursor_;
  std::int64_t claimed_ = 0;  // tickets that workers took
  std::int64_t handed_ = 0;   // tickets that next() returned; the last one is still in use
  int idle_ = 0;              // workers that wait for slot_free_
  bool stop_ = false;
  std::chrono::duration<double> waited_{0};
  std::unique_ptr<Worker> caller_;  // for what next() has to read itself
  std::vector<std::thread> workers_;
};

}  // namespace trireme
