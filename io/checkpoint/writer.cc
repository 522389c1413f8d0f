#include "io/checkpoint/writer.h"

#include <array>
#include <utility>

#include "mpi/agreement.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {

CheckpointWriter::CheckpointWriter(Communicator& comm, SaveTarget& target, Seconds patience)
    : comm_(comm), target_(target), patience_(patience) {}

std::optional<SaveOutcome> CheckpointWriter::begin_save(const CheckpointMeta& meta,
                                                        std::shared_ptr<const FolderKey> key) {
  const double start = steady_seconds();
  std::optional<SaveOutcome> before;
  if (in_flight()) {
    ++stats_.waits;
    before = finish();
    stats_.wait_seconds += steady_seconds() - start;
  }
  meta_ = meta;
  data_key_ = key == nullptr ? "" : key->key.id();
  target_.begin(meta.step, std::move(key));
  save_start_ = start;
  ++stats_.saves;
  phase_ = Phase::writing;
  table_ = {};
  warning_.clear();
  return before;
}

void CheckpointWriter::end_stall() {
  stats_.last_stall_seconds = steady_seconds() - save_start_;
  stats_.stall_seconds += stats_.last_stall_seconds;
}

std::optional<SaveOutcome> CheckpointWriter::save(const CheckpointMeta& meta,
                                                  std::span<const TensorBlock> blocks,
                                                  std::function<void()> ready,
                                                  std::shared_ptr<const FolderKey> key) {
  std::optional<SaveOutcome> before = begin_save(meta, std::move(key));
  try {
    start_writing(target_.take(blocks, std::move(ready)));
  } catch (const Error& e) {
    job_.fail(e.what());
  }
  end_stall();
  return before;
}

std::optional<SaveOutcome> CheckpointWriter::save(const CheckpointMeta& meta, Snapshot snapshot,
                                                  std::shared_ptr<const FolderKey> key) {
  std::optional<SaveOutcome> before = begin_save(meta, std::move(key));
  start_writing(std::move(snapshot));
  end_stall();
  return before;
}

void CheckpointWriter::start_writing(Snapshot snapshot) {
  snapshot_ = std::move(snapshot);
  filled_ = snapshot_.filled;
  const std::string sealed_with = snapshot_.sealer == nullptr ? "" : snapshot_.sealer->key_id();
  check(snapshot_.bytes == 0 || sealed_with == data_key_, "a snapshot has the key of its save");
  job_.start([this] {
    snapshot_.complete();
    const double start = steady_seconds();
    if (const std::optional<StoredShard> shard = target_.write(snapshot_)) {
      table_ = {{*shard}, snapshot_.tensors};
    }
    write_seconds_ = steady_seconds() - start;
  });
}

std::optional<SaveOutcome> CheckpointWriter::poll() {
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

void CheckpointWriter::start_committing() {
  job_.wait();
  stats_.last_write_seconds = write_seconds_;
  target_.before_gather();
  // Every rank uses rank 0's clock, so that every manifest of the step is the same.
  std::vector<std::string> tables = all_gather_text(comm_, utc_now() + "\n" + to_text(table_));
  phase_ = Phase::committing;
  if (!target_.commits()) {
    job_.succeed();
    return;
  }
  job_.start([this, tables = std::move(tables)] {
    Manifest manifest = joined(tables);
    saved_bytes_ = manifest.bytes();
    warning_ = target_.commit(std::move(manifest));
  });
}

Manifest CheckpointWriter::joined(const std::vector<std::string>& tables) const {
  Manifest manifest;
  manifest.created = tables.front().substr(0, tables.front().find('\n'));
  manifest.meta = meta_;
  manifest.data_key = data_key_;
  std::vector<ShardTable> parsed;
  parsed.reserve(tables.size());
  for (const std::string& text : tables) {
    parsed.push_back(
        parse_shard_table(std::string_view(text).substr(text.find('\n') + 1), "a rank's table"));
  }
  merge_tables(std::move(parsed), manifest);
  return manifest;
}

// The jobs of all ranks have ended here. Therefore the target may clean up, and it does so before
// other ranks continue and perhaps try the same step again.
SaveOutcome CheckpointWriter::end_save(bool durable) {
  job_.wait();
  phase_ = Phase::idle;
  std::string message = job_.state() == BackgroundJob::State::failed ? job_.error() : warning_;
  const std::string also = target_.settle(durable);
  message += (message.empty() || also.empty() ? "" : "; ") + also;
  SaveOutcome outcome{meta_.step, durable, false, gather_faults(comm_, message), 0, 0};
  std::array<std::int64_t, 2> most = {std::exchange(saved_bytes_, 0),
                                      !durable && target_.lost() ? 1 : 0};
  comm_.all_reduce({most.data(), most.size(), DType::i64}, ReduceOp::max).wait();
  outcome.bytes = most[0];
  outcome.fenced = most[1] != 0;
  outcome.seconds = steady_seconds() - save_start_;
  ++(durable ? stats_.durable : stats_.failed);
  return outcome;
}

std::optional<SaveOutcome> CheckpointWriter::finish() {
  std::optional<SaveOutcome> outcome;
  while (in_flight()) {
    if (!job_.wait_for(patience_)) {
      throw Hang(fmt::format(
          "step {}: writing to {} did not finish within {}: the file system does not respond. "
          "Check its servers and dmesg. Older checkpoints are intact; if saves normally take this "
          "long, raise comm.deadline.checkpoint",
          meta_.step, target_.attempt_folder().string(), format_seconds(patience_.count())));
    }
    outcome = poll();
  }
  return outcome;
}

}  // namespace trireme
