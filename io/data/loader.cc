#include "io/data/loader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "io/data/widen_tokens.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/ignored_target.h"

namespace trireme {
namespace {

void check_plan(const LoaderPlan& plan) {
  const auto odd = plan.micro_batch < 1 ? std::optional(std::int64_t{0})
                                        : plan.batches.stage_not_multiple_of(plan.micro_batch);
  if (odd) {
    throw ConfigError(fmt::format("a batch of {} samples is not a multiple of micro_batch {}",
                                  plan.batches.size_of_stage(*odd), plan.micro_batch));
  }
  check(plan.depth_steps > 0 && plan.threads > 0, "a loader reads ahead, on threads");
}

}  // namespace

// Worker holds what a thread keeps from one micro-batch to the next.
struct Loader::Worker {
  // OfSource is the part for one dataset.
  struct OfSource {
    BatchReads reads;
    std::optional<EpochOrder> order;

    // Equals sampler(n), but keeps the order of the epoch from call to call.
    std::int64_t sample(const Sampler& sampler, std::int64_t n) {
      const std::int64_t epoch = n / sampler.samples();
      if (!order || order->epoch() != epoch) {
        order.emplace(sampler, epoch);
      }
      return (*order)(n % sampler.samples());
    }
  };
  explicit Worker(std::size_t sources) : of_sources(sources) {}

  std::vector<std::byte> scratch;
  std::vector<OfSource> of_sources;
  std::vector<std::int64_t> ends;  // of the documents of one sample
};

Loader::Loader(const Dataset& dataset, const Sampler& sampler, const LoaderPlan& plan,
               std::int64_t first_sample)
    : Loader({LoaderSource{dataset, sampler}}, Mixture(), plan, first_sample) {}

Loader::Loader(const std::vector<LoaderSource>& sources, const Mixture& mixture,
               const LoaderPlan& plan, std::int64_t first_sample)
    : mixture_(mixture),
      plan_(plan),
      end_batch_(plan.steps < 0 ? std::numeric_limits<std::int64_t>::max()
                                : plan.first_batch + plan.steps) {
  check_plan(plan);
  check(sources.size() == mixture.sources(), "a mixture is of all sources");
  for (const LoaderSource& each : sources) {
    sources_.push_back(
        {each.dataset, each.sampler, SampleIndex(each.dataset.manifest(), plan.sequence)});
    check(each.sampler.samples() == sources_.back().index.samples(),
          "the sampler was made for this dataset");
  }
  caller_ = std::make_unique<Worker>(sources_.size());
  check(first_sample >= 0 && plan.first_batch >= 0, "samples consumed are not negative");
  cursor_ = {plan.first_batch, first_sample, micros_of(plan.batches.size_of(plan.first_batch)), 0};
  make_slots(micros_of(plan.batches.full()).size());
  for (int i = 0; i < plan.threads; ++i) {
    workers_.emplace_back([this] { work(); });
  }
}

// There are slots for `depth_steps` of the largest steps, and for the step that is leased.
void Loader::make_slots(std::size_t micros) {
  slots_.resize(static_cast<std::size_t>(plan_.depth_steps + 1) * micros);
  free_ = static_cast<std::int64_t>(slots_.size());
  const std::int64_t elements = plan_.micro_batch * plan_.sequence;
  Pool& memory = plan_.memory != nullptr ? *plan_.memory : ordinary_memory_;
  memory_ = memory.allocate(2 * free_ * elements * size_of(DType::i32));
  auto* next = as<std::int32_t>(memory_.view(DType::i32));
  for (Slot& slot : slots_) {
    slot.ids = next;
    slot.targets = next + elements;
    next += 2 * elements;
  }
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void Loader::work() {
  Worker worker(sources_.size());
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    slot_free_.wait(lock, [this] { return stop_ || all_claimed() || may_claim(); });
    --idle_;
    if (stop_ || all_claimed()) {
      return;
    }
    fill_next(lock, worker);
    slot_filled_.notify_one();
  }
}

void Loader::fill_next(std::unique_lock<std::mutex>& lock, Worker& worker) {
  Slot& slot = slot_of(claimed_++);
  slot.free = false;
  --free_;
  const std::int64_t first_sample = claim_micro_batch();
  lock.unlock();
  std::exception_ptr error;
  try {
    fill(first_sample, slot, worker);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.error = error;
  slot.filled = true;
}

std::int64_t Loader::claim_micro_batch() {
  const std::int64_t first =
      cursor_.first_sample + cursor_.micros[cursor_.micro] * plan_.micro_batch;
  if (++cursor_.micro == cursor_.micros.size()) {
    const std::int64_t size = plan_.batches.size_of(cursor_.batch);
    const std::int64_t next = plan_.batches.size_of(++cursor_.batch);
    cursor_.first_sample += size;
    cursor_.micro = 0;
    if (next != size) {
      cursor_.micros = micros_of(next);
    }
  }
  return first;
}

std::vector<std::int64_t> Loader::micros_of(std::int64_t batch_samples) const {
  const std::int64_t count = batch_samples / plan_.micro_batch;
  std::vector<std::int64_t> micros = plan_.micros(count);
  check(!micros.empty() && std::all_of(micros.begin(), micros.end(),
                                       [=](std::int64_t m) { return m >= 0 && m < count; }),
        "a rank's micro-batches lie within the step");
  return micros;
}

void Loader::fill(std::int64_t first, Slot& slot, Worker& worker) const {
  slot.first_sample = first;
  for (Worker::OfSource& each : worker.of_sources) {
    each.reads.rows.clear();
  }
  for (std::int64_t row = 0; row < plan_.micro_batch; ++row) {
    const MixturePlace place = mixture_(first + row);
    Worker::OfSource& own = worker.of_sources[place.source];
    own.reads.rows.push_back({row, own.sample(sources_[place.source].sampler, place.number)});
  }
  fault("data.read");
  // The disk gets all read-ahead requests at once, before the loop below waits for the data.
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    BatchReads& batch = worker.of_sources[s].reads;
    batch.plan(sources_[s].index);
    for (const BatchReads::Read& read : batch.reads) {
      sources_[s].dataset.will_need(read.run);
    }
  }
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    read_rows(sources_[s], worker.of_sources[s].reads, worker.scratch, slot);
  }
  if (plan_.separates_documents) {
    separate_documents(slot, worker);
  }
}

void Loader::read_rows(const Source& source, const BatchReads& batch,
                       std::vector<std::byte>& scratch, Slot& slot) const {
  const Dataset& dataset = source.dataset;
  const int width = dataset.manifest().token_bytes;
  for (const BatchReads::Read& read : batch.reads) {
    const std::byte* raw = dataset.read(read.run, scratch);
    std::uint32_t largest = 0;
    for (std::size_t r = read.first_row; r < read.end_row; ++r) {
      const BatchReads::Row& row = batch.rows[r];
      const std::byte* tokens = raw + row.tokens_before * width;
      std::int32_t* ids = slot.ids + row.row * plan_.sequence;
      std::int32_t* targets = slot.targets + row.row * plan_.sequence;
      largest = std::max(largest, widen_tokens(tokens, width, plan_.sequence, ids));
      std::copy(ids + 1, ids + plan_.sequence, targets);
      largest = std::max(largest, widen_tokens(tokens + width * plan_.sequence, width, 1,
                                               targets + plan_.sequence - 1));
    }
    if (largest >= dataset.manifest().vocab) {
      dataset.check_vocabulary(read.run, raw);
    }
  }
  if (dataset.manifest().has_mask()) {
    mask_targets(dataset, batch, scratch, slot);
  }
}

void Loader::mask_targets(const Dataset& dataset, const BatchReads& batch,
                          std::vector<std::byte>& scratch, Slot& slot) const {
  for (const BatchReads::Read& read : batch.reads) {
    const std::byte* mask = dataset.read_mask(read.run, scratch);
    for (std::size_t r = read.first_row; r < read.end_row; ++r) {
      const BatchReads::Row& row = batch.rows[r];
      const std::byte* of_target = mask + row.tokens_before + 1;
      std::int32_t* targets = slot.targets + row.row * plan_.sequence;
      for (std::int64_t t = 0; t < plan_.sequence; ++t) {
        targets[t] = of_target[t] == std::byte{0} ? kIgnoredTarget : targets[t];
      }
    }
  }
}

void Loader::separate_documents(Slot& slot, Worker& worker) const {
  std::vector<DocumentRange> documents;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    for (const BatchReads::Row& row : worker.of_sources[s].reads.rows) {
      const TokenRun sample = sources_[s].index.locate(row.sample);
      sources_[s].dataset.document_ends({sample.shard, sample.first, plan_.sequence}, worker.ends,
                                        worker.scratch);
      std::int32_t* targets = slot.targets + row.row * plan_.sequence;
      std::int64_t first = 0;
      for (const std::int64_t end : worker.ends) {
        const std::int64_t stop = end - sample.first;
        documents.push_back({row.row, first, stop - first});
        targets[stop - 1] = kIgnoredTarget;
        first = stop;
      }
      if (first < plan_.sequence) {
        documents.push_back({row.row, first, plan_.sequence - first});
      }
    }
  }
  if (std::ssize(documents) == plan_.micro_batch) {
    slot.documents = nullptr;  // each sample is one document
    return;
  }
  std::ranges::sort(documents, {},
                    [](const DocumentRange& d) { return std::pair(d.row, d.first); });
  slot.documents = std::make_shared<const std::vector<DocumentRange>>(std::move(documents));
}

LoadedMicroBatch Loader::next() {
  std::unique_lock lock(mutex_);
  check(handed_ < claimed_ || !all_claimed(),
        "the loader was asked for no more steps than it was made for");
  Slot& slot = slot_of(handed_);
  check(handed_ < claimed_ || slot.free, "at most one step's micro-batches are leased at a time");
  ++handed_;
  if (!slot.filled) {
    const auto start = std::chrono::steady_clock::now();
    while (!slot.filled) {
      // Instead of waiting for a worker, read this micro-batch or a later one.
      if (may_claim()) {
        fill_next(lock, *caller_);
      } else {
        slot_filled_.wait(lock);
      }
    }
    waited_ += std::chrono::steady_clock::now() - start;
  }
  slot.filled = false;
  const std::exception_ptr error = slot.error;
  lock.unlock();
  if (error) {
    give_back(slot);
    std::rethrow_exception(error);
  }
  return lease(slot);
}

LoadedMicroBatch Loader::lease(Slot& slot) {
  const std::int64_t elements = plan_.micro_batch * plan_.sequence;
  const auto give_back_slot = [this, &slot](const void*) { give_back(slot); };
  return {slot.first_sample,
          plan_.micro_batch,
          plan_.sequence,
          {slot.ids, elements, DType::i32},
          {slot.targets, elements, DType::i32},
          std::shared_ptr<const void>(slot.ids, give_back_slot),
          slot.documents};
}

// Wakes a sleeping worker only once half of the slots are free, not for every slot.
void Loader::give_back(Slot& slot) noexcept {
  const std::lock_guard lock(mutex_);
  slot.free = true;
  ++free_;
  if (idle_ > 0 && 2 * free_ >= static_cast<std::int64_t>(slots_.size())) {
    slot_free_.notify_one();
  }
}

}  // namespace trireme
