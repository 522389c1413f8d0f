#include "io/checkpoint/memory/memory_writer.h"

#include <algorithm>
#include <system_error>

#include "io/checkpoint/clock.h"
#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/base/fault.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

MemoryWriter::MemoryWriter(Communicator& comm, const NodeMap& nodes, MemoryOptions options)
    : comm_(comm),
      options_(std::move(options)),
      leads_(nodes.leads(comm.rank())),
      own_(options_.node, options_.generation, comm.rank()) {
  check(nodes.all(), "every rank has a node folder");
  if (options_.copy_threads == 0) {
    options_.copy_threads = available_processors();
  }
}

MemoryWriter::~MemoryWriter() {
  job_.wait();
  for (const HeldStep& step : held_) {
    if (step.is_whole) {
      slots_[step.slot] = MemorySlot();
    }
  }
  for (MemorySlot& slot : slots_) {
    if (slot) {
      const fs::path folder = slot.file().parent_path();
      slot.remove();
      std::error_code others_files_are_there;
      fs::remove(folder, others_files_are_there);
    }
  }
}

void MemoryWriter::pass(std::string_view point) const {
  fault(point);
  if (options_.observer) {
    options_.observer(point);
  }
}

std::string MemoryWriter::open(const std::optional<MemoryStepName>& resumed) {
  std::string fault;
  std::int64_t kept = 0;
  std::int64_t copied = 1;
  try {
    if (leads_) {
      own_.open();
      kept = resumed && own_.holds(*resumed) ? 1 : 0;
      copied = kept == 0 || own_.is_copied(*resumed) ? 1 : 0;
      own_.keep_only(resumed ? std::vector{own_.step(*resumed)} : std::vector<fs::path>());
    }
  } catch (const Error& e) {
    fault = e.what();
  }
  const std::string faults = gather_faults(comm_, fault);
  kept = all_reduce_value(comm_, kept, ReduceOp::max);
  copied = all_reduce_value(comm_, copied, ReduceOp::min);
  if (kept != 0) {
    held_.push_back({*resumed, true, copied != 0, false, kMemorySlots - 1});
  }
  return faults;
}

std::string MemoryWriter::reserve(std::span<const TensorBlock> blocks) {
  const ShardPlan plan = plan_shard_of_rank(blocks, 0, options_.generation, comm_.rank());
  if (plan.tensors.empty()) {
    return "";
  }
  slot_bytes_ = plan.bytes;
  try {
    own_.make(own_.spare_folder());
    for (std::size_t i = 0; i < kMemorySlots - held_.size(); ++i) {
      slots_[i] = MemorySlot(own_.spare_file(i), plan.bytes, options_.copy_threads);
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

fs::path MemoryWriter::folder_of(const HeldStep& step) const {
  return step.is_whole ? own_.step(step.name) : own_.attempt(step.name);
}

std::vector<fs::path> MemoryWriter::folders_in_use() const {
  std::vector<fs::path> folders = {own_.spare_folder()};
  for (const HeldStep& step : held_) {
    folders.push_back(folder_of(step));
  }
  return folders;
}

void MemoryWriter::learn_copies() {
  if (!options_.partner || held_.empty()) {
    return;
  }
  std::vector<std::int64_t> copied;
  for (const HeldStep& step : held_) {
    const bool lacks = leads_ && own_.holds(step.name) && !own_.is_copied(step.name);
    copied.push_back(lacks ? 0 : 1);
  }
  comm_
      .all_reduce({copied.data(), static_cast<std::int64_t>(copied.size()), DType::i64, {}},
                  ReduceOp::min)
      .wait();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    held_[i].is_copied = held_[i].is_whole && copied[i] != 0;
  }
}

// The slot of the save that begins.
std::optional<std::size_t> MemoryWriter::take_place() {
  std::optional<std::size_t> slot;
  if (held_.size() < kMemorySlots) {
    std::array<bool, kMemorySlots> taken{};
    for (const HeldStep& step : held_) {
      taken[step.slot] = true;
    }
    slot = static_cast<std::size_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
  } else if (const auto given_up = step_to_give_up(held_)) {
    slot = held_[*given_up].slot;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(*given_up));
  }
  if (slot) {
    held_.push_back({{meta_.step, options_.generation}, false, false, false, *slot});
  }
  return slot;
}

std::optional<SaveOutcome> MemoryWriter::save(const CheckpointMeta& meta,
                                              std::span<const TensorBlock> blocks) {
  const double start = now();
  std::optional<SaveOutcome> before;
  if (in_flight()) {
    ++stats_.waits;
    before = finish();
    stats_.wait_seconds += now() - start;
  }
  job_.wait();
  learn_copies();
  meta_ = meta;
  save_start_ = start;
  ++stats_.saves;
  phase_ = Phase::digesting;
  snapshot_ = {};
  table_ = {};
  const std::optional<std::size_t> slot = take_place();
  has_place_ = slot.has_value();
  if (!slot) {
    job_.fail("a step is still being written to disk, and no newer one is copied yet");
    return before;
  }
  const ShardPlan plan = plan_shard_of_rank(blocks, meta.step, options_.generation, comm_.rank());
  try {
    pass("memory.snapshot");
    fill(slots_[*slot], plan);
    pass("memory.snapshot_taken");
  } catch (const Error& e) {
    job_.fail(e.what());
  }
  stats_.last_stall_seconds = now() - start;
  stats_.stall_seconds += stats_.last_stall_seconds;
  return before;
}

// Copies the blocks and starts the digests.
void MemoryWriter::fill(MemorySlot& slot, const ShardPlan& plan) {
  const fs::path folder = folder_of(held_.back());
  own_.make(folder);
  if (plan.tensors.empty()) {
    snapshot_.image = slot.data();
    job_.succeed();
    return;
  }
  const std::string name = shard_file_name(comm_.rank());
  if (slot && slot.bytes() == plan.bytes) {
    slot.move_to(folder / name);
  } else {
    slot.remove();
    slot = MemorySlot(folder / name, plan.bytes, options_.copy_threads);
  }
  fill_image(plan, slot.data(), options_.copy_threads);
  snapshot_ = {slot.data(), plan.bytes, plan.tensors};
  table_.tensors = plan.tensors;
  job_.start([this, name] {
    const double start = now();
    table_.shards = {describe_shard(name, snapshot_.image, snapshot_.bytes)};
    stats_.last_write_seconds = now() - start;
  });
}

std::optional<Snapshot> MemoryWriter::snapshot() const {
  const bool taken = has_place_ && (snapshot_.bytes > 0 || table_.tensors.empty()) &&
                     job_.state() != BackgroundJob::State::failed;
  return taken ? std::optional(snapshot_) : std::nullopt;
}

void MemoryWriter::pin_latest() {
  if (has_place_) {
    held_.back().is_pinned = true;
  }
}

void MemoryWriter::unpin() {
  for (HeldStep& step : held_) {
    step.is_pinned = false;
  }
}

std::optional<SaveOutcome> MemoryWriter::poll() {
  if (!in_flight()) {
    return std::nullopt;
  }
  const auto state = static_cast<BackgroundJob::State>(
      all_reduce_value(comm_, static_cast<std::int64_t>(job_.state()), ReduceOp::min));
  if (state == BackgroundJob::State::running) {
    return std::nullopt;
  }
  if (state == BackgroundJob::State::failed || phase_ == Phase::committing) {
    return end_save(state == BackgroundJob::State::succeeded);
  }
  start_committing();
  return std::nullopt;
}

void MemoryWriter::start_committing() {
  job_.wait();
  pass("memory.gather");
  // Rank 0's clock for all, so that every node writes the same manifest.
  std::vector<std::string> texts = all_gather_text(comm_, utc_now() + "\n" + to_text(table_));
  phase_ = Phase::committing;
  if (!leads_) {
    job_.succeed();
    return;
  }
  std::vector<fs::path> in_use = folders_in_use();
  in_use.push_back(own_.step(held_.back().name));
  job_.start(
      [this, texts = std::move(texts), in_use = std::move(in_use), name = held_.back().name] {
        own_.complete(name, join(texts), options_.partner);
        pass("memory.rename");
        own_.commit(name);
        pass("memory.renamed");
        own_.keep_only(in_use);
      });
}

// The manifest of the whole, from all ranks' tables: the same on every node.
Manifest MemoryWriter::join(const std::vector<std::string>& tables) {
  Manifest manifest;
  manifest.software = options_.software;
  manifest.created = tables.front().substr(0, tables.front().find('\n'));
  manifest.generation = options_.generation;
  manifest.meta = meta_;
  manifest.meta.extra[kRunField] = options_.run;
  std::vector<ShardTable> parsed;
  for (const std::string& text : tables) {
    parsed.push_back(
        parse_shard_table(std::string_view(text).substr(text.find('\n') + 1), "a rank's table"));
  }
  merge_tables(std::move(parsed), manifest);
  saved_bytes_ = manifest.bytes();
  return manifest;
}

// All jobs have ended here.
SaveOutcome MemoryWriter::end_save(bool whole) {
  job_.wait();
  const std::string fault = job_.state() == BackgroundJob::State::failed ? job_.error() : "";
  settle(whole);
  phase_ = Phase::idle;
  SaveOutcome outcome;
  outcome.step = meta_.step;
  outcome.durable = whole;
  outcome.message = gather_faults(comm_, fault);
  outcome.bytes = all_reduce_value(comm_, saved_bytes_, ReduceOp::max);
  outcome.seconds = now() - save_start_;
  saved_bytes_ = 0;
  ++(whole ? stats_.durable : stats_.failed);
  if (whole) {
    let_resumed_go();
  }
  return outcome;
}

// Brings names and places of the latest save to what all ranks have agreed upon.
void MemoryWriter::settle(bool whole) {
  if (!has_place_) {
    return;
  }
  HeldStep& step = held_.back();
  step.is_whole = whole;
  if (whole) {
    slots_[step.slot].found_at(own_.step(step.name) / shard_file_name(comm_.rank()));
  } else if (leads_ && phase_ == Phase::committing) {
    // Some node may have its name already: without the others' it is nothing.
    own_.undo(step.name);
  }
}

// Two newer steps are whole: what an earlier run left makes room for this one's third slot.
void MemoryWriter::let_resumed_go() {
  const auto given_up = held_.size() < kMemorySlots ? std::nullopt : step_to_give_up(held_);
  if (!given_up || held_[*given_up].name.generation == options_.generation || slot_bytes_ == 0) {
    return;
  }
  const std::size_t slot = held_[*given_up].slot;
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(*given_up));
  job_.start([this, slot, in_use = folders_in_use()] {
    if (leads_) {
      own_.keep_only(in_use);
    }
    own_.make(own_.spare_folder());
    slots_[slot] = MemorySlot(own_.spare_file(slot), slot_bytes_, 1);
  });
}

std::optional<SaveOutcome> MemoryWriter::finish() {
  std::optional<SaveOutcome> outcome;
  while (in_flight()) {
    job_.wait();
    outcome = poll();
  }
  return outcome;
}

std::int64_t MemoryWriter::bytes() const {
  std::int64_t total = 0;
  for (const MemorySlot& slot : slots_) {
    total += slot.bytes();
  }
  return total;
}

}  // namespace trireme
