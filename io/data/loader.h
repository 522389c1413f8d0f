// Loader reads the micro-batches of one rank ahead on threads of its own. The content of a
// micro-batch depends only on the sampler and on its position in the run: sample i of micro-batch m
// of step s is number first_sample + S + m * micro_batch + i, where S is the number of samples in
// the steps before s, whichever rank computes it. If there are several datasets, a mixture says
// from which of them each sample comes. Borrows the datasets, which must outlive it. Only one
// thread may call next().
//
//   workers --> | filled | filled | ... | being filled |   two steps ahead, in order --> next()
//
// A micro-batch that next() returned is leased: its memory does not change until the lease ends, so
// that kernels and copies to a device can read it without another copy on the host. In a pool of
// pinned memory, a device copies it while the host computes.
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
#include "io/data/mixture.h"
#include "io/data/sampler.h"
#include "src/device/device.h"
#include "src/device/pool.h"
#include "src/tensor/document_range.h"

namespace trireme {

// Returns the numbers of one rank's micro-batches in a step of `micro_batches`, in order. There is
// at least one.
using MicroBatchNumbers = std::function<std::vector<std::int64_t>(std::int64_t micro_batches)>;

struct LoaderPlan {
  std::int64_t sequence = 0;
  BatchSchedule batches = 1;      // samples of each step, over all ranks
  std::int64_t first_batch = 0;   // number in `batches` of the first step's batch
  std::int64_t micro_batch = 0;   // samples
  MicroBatchNumbers micros = {};  // called by any thread of the loader, but by one at a time
  std::int64_t steps = -1;        // number of steps; negative if unlimited
  std::int64_t depth_steps = 2;
  int threads = 1;
  // Memory of the host for the slots, which outlives the loader; null for ordinary memory.
  Pool* memory = nullptr;
  // Whether micro-batches say where documents lie, and ignore the target of the last token of each,
  // which is in the next one.
  bool separates_documents = false;
};

struct LoadedMicroBatch {
  std::int64_t first_sample = 0;  // global number in the run
  std::int64_t batch = 0;
  std::int64_t time = 0;
  ConstView ids;      // i32 [B,T]
  ConstView targets;  // i32 [B,T]: the token that follows each id, or kIgnoredTarget
  // Keeps ids and targets unchanged while a copy of it exists; all copies must be gone before the
  // loader is destroyed. If null, the code that made the micro-batch keeps them.
  std::shared_ptr<const void> lease = nullptr;
  // Null if the plan does not separate documents, or no document ends within a sample.
  DocumentRanges documents = {};
};

// LoaderSource is a dataset and the order in which the loader reads its samples.
struct LoaderSource {
  const Dataset& dataset;
  Sampler sampler;
};

class Loader {
 public:
  // first_sample: number of samples consumed before. Throws ConfigError if the plan is
  // inconsistent.
  Loader(const Dataset& dataset, const Sampler& sampler, const LoaderPlan& plan,
         std::int64_t first_sample);
  // mixture: has as many sources.
  Loader(const std::vector<LoaderSource>& sources, const Mixture& mixture, const LoaderPlan& plan,
         std::int64_t first_sample);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the next micro-batch in order. If it is not ready yet, helps the workers to read.
  // Rethrows the error that occurred when it was read. At most the micro-batches of one step may be
  // leased at a time.
  LoadedMicroBatch next();
  // Returns the total time that next() has waited so far.
  std::chrono::duration<double> wait_time() const { return waited_; }

 private:
  struct Slot {
    std::int64_t first_sample = 0;
    std::int32_t* ids = nullptr;      // [B,T], in memory_
    std::int32_t* targets = nullptr;  // [B,T], in memory_
    DocumentRanges documents;
    bool free = true;  // neither filled, nor leased
    bool filled = false;
    std::exception_ptr error;
  };
  // Source is a LoaderSource with the places of its samples.
  struct Source {
    const Dataset& dataset;
    Sampler sampler;
    SampleIndex index;
  };
  struct Worker;
  // Cursor describes the micro-batch that the next ticket reads.
  struct Cursor {
    std::int64_t batch = 0;            // number in the schedule
    std::int64_t first_sample = 0;     // global number of the batch's first sample
    std::vector<std::int64_t> micros;  // this rank's micro-batches in the batch
    std::size_t micro = 0;             // index into `micros`
  };

  // Makes the slots. micros: micro-batches of this rank in the largest step.
  void make_slots(std::size_t micros);
  void work();
  // Claims the next ticket and fills its slot. The lock is released while it reads.
  void fill_next(std::unique_lock<std::mutex>& lock, Worker& worker);
  // first_sample: global number of the micro-batch's first sample.
  void fill(std::int64_t first_sample, Slot& slot, Worker& worker) const;
  // Reads the samples of one dataset into their rows.
  void read_rows(const Source& source, const BatchReads& batch, std::vector<std::byte>& scratch,
                 Slot& slot) const;
  // Ignores the targets that the dataset's loss mask leaves out.
  void mask_targets(const Dataset& dataset, const BatchReads& batch,
                    std::vector<std::byte>& scratch, Slot& slot) const;
  // Finds the documents of the samples of all datasets, and ignores targets in the next document.
  void separate_documents(Slot& slot, Worker& worker) const;
  // Advances the cursor and returns the first sample of the micro-batch that it was at.
  std::int64_t claim_micro_batch();
  std::vector<std::int64_t> micros_of(std::int64_t batch_samples) const;
  bool all_claimed() const { return cursor_.batch == end_batch_; }
  Slot& slot_of(std::int64_t ticket) {
    return slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  }
  bool may_claim() { return !all_claimed() && slot_of(claimed_).free; }
  LoadedMicroBatch lease(Slot& slot);
  void give_back(Slot& slot) noexcept;

  std::vector<Source> sources_;
  Mixture mixture_;
  LoaderPlan plan_;
  std::int64_t end_batch_;  // one past the last step's batch; the largest integer if unlimited

  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::condition_variable slot_filled_;
  Pool ordinary_memory_{Device::cpu()};
  Buffer memory_;  // of all slots
  std::vector<Slot> slots_;
  Cursor cursor_;
  std::int64_t claimed_ = 0;  // tickets that threads took
  std::int64_t handed_ = 0;   // tickets that next() returned
  std::int64_t free_ = 0;     // number of free slots
  int idle_ = 0;              // workers that wait for slot_free_
  bool stop_ = false;
  std::chrono::duration<double> waited_{0};
  std::unique_ptr<Worker> caller_;  // used when next() reads micro-batches itself
  std::vector<std::thread> workers_;
};

}  // namespace trireme
