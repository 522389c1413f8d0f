#include "io/checkpoint/memory/memory_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/clock.h"
#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/base/fault.h"

namespace trireme {
namespace fs = std::filesystem;

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
      own_.keep_only_of_all(resumed ? std::vector{own_.step(*resumed)} : std::vector<fs::path>());
      if (kept != 0 && options_.partner) {
        own_.want_copy(*resumed);
      }
    }
  } catch (const Error& e) {
    fault = e.what();
  }
  std::string faults = gather_faults(comm_, fault);
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
  const MemoryStepName name{meta_.step, options_.generation};
  const auto same = std::find_if(held_.begin(), held_.end(),
                                 [&](const HeldStep& step) { return step.name == name; });
  if (same != held_.end()) {
    // The run went back: of one name there is one step.
    if (!same->is_pinned) {
      slot = same->slot;
      held_.erase(same);
    }
  } else if (held_.size() < kMemorySlots) {
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
    held_.push_back({name, false, false, false, *slot});
  }
  return slot;
}

std::optional<SaveOutcome> MemoryWriter::save(const CheckpointMeta& meta,
                                              std::span<const TensorBlock> blocks) {
  const double start = steady_seconds();
  std::optional<SaveOutcome> before;
  if (in_flight()) {
    ++stats_.waits;
    before = finish();
    stats_.wait_seconds += steady_seconds() - start;
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
    job_.fail(
        "both older steps in memory are still needed: one is being written to disk, and the "
        "partners' copies are of the other. If this happens often, raise checkpoint.memory_every "
        "or checkpoint.every");
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
  stats_.last_stall_seconds = steady_seconds() - start;
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
  if (!slot || slot.bytes() != plan.bytes || !slot.move_to(folder / name)) {
    slot.remove();
    slot = MemorySlot(folder / name, plan.bytes, options_.copy_threads);
  }
  fill_image(plan, slot.data(), options_.copy_threads);
  snapshot_ = {slot.data(), plan.bytes, plan.tensors};
  table_.tensors = plan.tensors;
  job_.start([this, name] {
    const double start = steady_seconds();
    table_.shards = {describe_shard(name, snapshot_.image, snapshot_.bytes)};
    stats_.last_write_seconds = steady_seconds() - start;
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
  const auto oldest =
      std::find_if(held_.begin(), held_.end(), [](const HeldStep& step) { return step.is_whole; });
  job_.start([this, texts = std::move(texts), in_use = std::move(in_use), name = held_.back().name,
              needed = oldest == held_.end() ? MemoryStepName() : oldest->name] {
    own_.complete(name, join(texts));
    pass("memory.rename");
    own_.commit(name);
    pass("memory.renamed");
    own_.keep_only(in_use);
    own_.remove_copies_before(needed);
  });
}

// The manifest of the whole, from all ranks' tables: the same on every node.
Manifest MemoryWriter::join(const std::vector<std::string>& tables) {
  Manifest manifest;
  manifest.software = options_.software;
  manifest.created = tables.front().substr(0, tables.front().find('\n'));
  manifest.generation = options_.generation;
  manifest.meta = meta_;
  (*manifest.meta.extra)[kRunField] = options_.run;
  std::vector<ShardTable> parsed;
  parsed.reserve(tables.size());
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
  std::string fault = job_.state() == BackgroundJob::State::failed ? job_.error() : "";
  const std::string warning = settle(whole);
  fault = fault.empty() ? warning : fault;
  phase_ = Phase::idle;
  SaveOutcome outcome =
      share_outcome(comm_, {meta_.step, whole, false, fault, std::exchange(saved_bytes_, 0),
                            steady_seconds() - save_start_});
  stats_.count(outcome);
  if (whole) {
    let_resumed_go();
  }
  return outcome;
}

// Brings names and places of the latest save to what all ranks have agreed upon. "" or what does
// not follow from it.
std::string MemoryWriter::settle(bool whole) {
  if (!has_place_) {
    return "";
  }
  HeldStep& step = held_.back();
  step.is_whole = whole;
  if (!whole) {
    if (leads_ && phase_ == Phase::committing) {
      // Some node may have its name already: without the others' it is nothing.
      own_.undo(step.name);
    }
    return "";
  }
  slots_[step.slot].found_at(own_.step(step.name) / shard_file_name(comm_.rank()));
  try {
    // Not before: a partner lets the older copy go for it, and all nodes have to have this one.
    if (leads_ && options_.partner) {
      own_.want_copy(step.name);
    }
  } catch (const Error& e) {
    return fmt::format("the step cannot be copied to a partner: {}", e.what());
  }
  return "";
}

// Two newer steps are whole: what an earlier run left makes room for this one's third slot.
void MemoryWriter::let_resumed_go() {
  const auto given_up = held_.size() < kMemorySlots ? std::nullopt : step_to_give_up(held_);
  if (!given_up || held_[*given_up].name.generation == options_.generation) {
    return;
  }
  const std::size_t slot = held_[*given_up].slot;
  const MemoryStepName given_up_name = held_[*given_up].name;
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(*given_up));
  // Of this one folder: other ranks may have begun the next save.
  job_.start([this, slot, folder = own_.step(given_up_name)] {
    if (leads_) {
      own_.remove(folder);
    }
    if (slot_bytes_ > 0) {  // this rank has blocks
      own_.make(own_.spare_folder());
      slots_[slot] = MemorySlot(own_.spare_file(slot), slot_bytes_, 1);
    }
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
