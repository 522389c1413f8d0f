#include "io/checkpoint/memory/memory_target.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/shard_plan.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/fault.h"

namespace trireme {
namespace fs = std::filesystem;

MemoryTarget::MemoryTarget(Communicator& comm, const NodeMap& nodes, MemoryOptions options)
    : comm_(comm),
      options_(std::move(options)),
      leads_(nodes.leads(comm.rank())),
      own_(options_.node, options_.generation, comm.rank()) {
  check(nodes.all(), "every rank has a node folder");
  if (options_.copy_threads == 0) {
    options_.copy_threads = available_processors();
  }
}

MemoryTarget::~MemoryTarget() {
  tidying_.wait();
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

std::string MemoryTarget::open(const std::optional<MemoryStepName>& resumed) {
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

std::string MemoryTarget::reserve(std::span<const TensorBlock> blocks) {
  const ShardPlan plan = plan_shard_of_rank(blocks, 0, options_.generation, comm_.rank());
  if (plan.tensors.empty()) {
    return "";
  }
  slot_bytes_ = plan.bytes;
  try {
    if (options_.encrypts) {
      reserve_plain(plan.bytes);
    }
    own_.make(own_.spare_folder());
    for (std::size_t i = 0; i < kMemorySlots - held_.size(); ++i) {
      slots_[i] = MemorySlot(own_.spare_file(i), plan.bytes, options_.copy_threads);
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void MemoryTarget::reserve_plain(std::int64_t bytes) {
  if (round_up(bytes, kDataAlignment) > plain_.bytes()) {
    plain_ = PageBuffer();  // free the old memory first
    plain_ = PageBuffer(bytes);
    touch(plain_.data(), plain_.bytes(), options_.copy_threads);
  }
}

fs::path MemoryTarget::folder_of(const HeldStep& step) const {
  return step.is_whole ? own_.step(step.name) : own_.attempt(step.name);
}

void MemoryTarget::learn_copies() {
  if (!options_.partner || held_.empty()) {
    return;
  }
  std::vector<std::int64_t> copied;
  for (const HeldStep& step : held_) {
    const bool lacks = leads_ && own_.holds(step.name) && !own_.is_copied(step.name);
    copied.push_back(lacks ? 0 : 1);
  }
  comm_
      .all_reduce({copied.data(), static_cast<std::int64_t>(copied.size()), DType::i64},
                  ReduceOp::min)
      .wait();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    held_[i].is_copied = held_[i].is_whole && copied[i] != 0;
  }
}

void MemoryTarget::begin(std::int64_t step, std::shared_ptr<const FolderKey> key) {
  key_ = std::move(key);
  tidying_.wait();
  learn_copies();
  name_ = {step, options_.generation};
  snapshot_.reset();
  is_committing_ = false;
  slot_ = take_slot();
}

// Returns the slot for the save that begins, or nothing if no step may be overwritten.
std::optional<std::size_t> MemoryTarget::take_slot() {
  std::optional<std::size_t> slot;
  const auto same = std::find_if(held_.begin(), held_.end(),
                                 [&](const HeldStep& step) { return step.name == name_; });
  if (same != held_.end()) {
    // The run went back to an earlier step: there is only one step of each name.
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
    held_.push_back({name_, false, false, false, *slot});
  }
  return slot;
}

Snapshot MemoryTarget::take(std::span<const TensorBlock> blocks, std::function<void()> ready) {
  if (!slot_) {
    throw IoError(
        "both older steps in memory are still needed: one is being written to disk, and the "
        "partners' copies are of the other. If this happens often, raise checkpoint.memory_every "
        "or checkpoint.every");
  }
  ShardPlan plan = plan_shard_of_rank(blocks, name_.step, options_.generation, comm_.rank());
  fault("memory.snapshot");
  const fs::path folder = attempt_folder();
  own_.make(folder);
  Snapshot snapshot;
  if (!plan.tensors.empty()) {
    MemorySlot& slot = slots_[*slot_];
    const fs::path file = folder / shard_file_name(comm_.rank());
    if (!slot || slot.bytes() != plan.bytes || !slot.move_to(file)) {
      slot.remove();
      slot = MemorySlot(file, plan.bytes, options_.copy_threads);
    }
    if (key_ != nullptr) {
      reserve_plain(plan.bytes);
    }
    snapshot = make_snapshot(
        std::move(plan), slot.data(),
        {options_.copy_threads, std::move(ready), [] { fault("memory.snapshot_taken"); },
         data_key(key_), shard_file_name(comm_.rank()), plain_.data()});
  } else {
    fault("memory.snapshot_taken");
  }
  snapshot_ = snapshot;
  return snapshot;
}

std::optional<StoredShard> MemoryTarget::write(const Snapshot& snapshot) {
  if (snapshot.bytes == 0) {
    return std::nullopt;
  }
  return describe_shard(shard_file_name(comm_.rank()), snapshot);
}

void MemoryTarget::pin_latest() {
  if (slot_) {
    held_.back().is_pinned = true;
  }
}

void MemoryTarget::unpin() {
  for (HeldStep& step : held_) {
    step.is_pinned = false;
  }
}

void MemoryTarget::before_gather() { fault("memory.gather"); }

// Writes the manifest of the whole step, which is the same on every node.
std::string MemoryTarget::commit(Manifest manifest) {
  is_committing_ = true;
  manifest.software = options_.software;
  manifest.generation = options_.generation;
  (*manifest.meta.extra)[kRunField] = options_.run;
  own_.complete(name_, manifest, key_.get());
  fault("memory.rename");
  own_.commit(name_);
  fault("memory.renamed");
  std::vector<fs::path> in_use = {own_.spare_folder(), own_.step(name_)};
  MemoryStepName oldest_whole;
  for (auto step = held_.rbegin(); step != held_.rend(); ++step) {
    in_use.push_back(folder_of(*step));
    oldest_whole = step->is_whole ? step->name : oldest_whole;
  }
  own_.keep_only(in_use);
  own_.remove_copies_before(oldest_whole);
  return "";
}

// Sets names and slots of the latest save according to the outcome on which all ranks agree.
std::string MemoryTarget::settle(bool durable) {
  if (!slot_) {
    return "";
  }
  held_.back().is_whole = durable;
  if (!durable) {
    if (is_committing_) {
      // This node may have renamed the step already; without the other nodes it is useless.
      own_.undo(name_);
    }
    return "";
  }
  slots_[*slot_].found_at(own_.step(name_) / shard_file_name(comm_.rank()));
  std::string warning = want_copy();
  let_resumed_go();
  return warning;
}

// Called only after all nodes have the step, because the partner then deletes its older copy.
std::string MemoryTarget::want_copy() const {
  try {
    if (leads_ && options_.partner) {
      own_.want_copy(name_);
    }
  } catch (const Error& e) {
    return fmt::format("the step cannot be copied to a partner: {}", e.what());
  }
  return "";
}

// When two newer steps are whole, removes the step that an earlier run left, for a third slot of
// this run.
void MemoryTarget::let_resumed_go() {
  const auto given_up = held_.size() < kMemorySlots ? std::nullopt : step_to_give_up(held_);
  if (!given_up || held_[*given_up].name.generation == options_.generation) {
    return;
  }
  const std::size_t slot = held_[*given_up].slot;
  const MemoryStepName given_up_name = held_[*given_up].name;
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(*given_up));
  // Remove only this folder, since other ranks may already have begun the next save.
  tidying_.start([this, slot, folder = own_.step(given_up_name)] {
    if (leads_) {
      own_.remove(folder);
    }
    if (slot_bytes_ > 0) {  // this rank has blocks
      own_.make(own_.spare_folder());
      slots_[slot] = MemorySlot(own_.spare_file(slot), slot_bytes_, 1);
    }
  });
}

std::int64_t MemoryTarget::bytes() const {
  std::int64_t total = 0;
  for (const MemorySlot& slot : slots_) {
    total += slot.bytes();
  }
  return total;
}

}  // namespace trireme
