#include "io/checkpoint/writer.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <sys/stat.h>

#include "io/checkpoint/clock.h"
#include "io/checkpoint/commit.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/shard_plan.h"
#include "mpi/agreement.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Every rank does it; the first one makes the folder.
void make_attempt_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) {
    return;
  }
  const int code = errno;
  if (code == ENOENT) {
    throw NotFound(
        fmt::format("{}: the checkpoint folder was removed, or its file system unmounted, while "
                    "this run was training",
                    path.parent_path().string()));
  }
  throw_errno(code, "create folder", path);
}

}  // namespace

ShardPlan plan_shard_of_rank(std::span<const TensorBlock> blocks, std::int64_t step,
                             std::int64_t generation, int rank) {
  return plan_shard(blocks, {{"trireme_step", std::to_string(step)},
                             {"trireme_generation", std::to_string(generation)},
                             {"trireme_shard", std::to_string(rank)}});
}

SaveOutcome share_outcome(Communicator& comm, SaveOutcome own) {
  own.message = gather_faults(comm, own.message);
  own.bytes = all_reduce_value(comm, own.bytes, ReduceOp::max);
  return own;
}

CheckpointWriter::CheckpointWriter(Communicator& comm, WriterOptions options)
    : comm_(comm), options_(std::move(options)) {
  (void)plan_retention({}, options_.retention);
  if (options_.copy_threads == 0) {
    options_.copy_threads = available_processors();
  }
  open_folder();
}

CheckpointWriter::~CheckpointWriter() {
  job_.wait();
  retention_.wait();
}

void CheckpointWriter::open_folder() {
  const std::string generation = run_on_root(comm_, [this] {
    make_directories(options_.folder);
    lock_ = std::make_unique<RunLock>(options_.folder, options_.force, options_.lock);
    clean_remains(options_.folder, lock_->generation());
    return std::to_string(lock_->generation());
  });
  generation_ = std::stoll(generation);
}

void CheckpointWriter::reserve(std::span<const TensorBlock> blocks) {
  staging_.reserve(plan_shard(blocks, {}).bytes + kDataAlignment, options_.copy_threads);
}

fs::path CheckpointWriter::attempt_folder() const {
  return options_.folder /
         TransientName{TransientName::Kind::attempt, meta_.step, generation_}.to_string();
}

std::optional<SaveOutcome> CheckpointWriter::begin_save(const CheckpointMeta& meta) {
  save_start_ = steady_seconds();
  std::optional<SaveOutcome> before;
  if (in_flight()) {
    const double start = save_start_;
    ++stats_.waits;
    before = finish();
    stats_.wait_seconds += steady_seconds() - start;
    save_start_ = start;
  }
  meta_ = meta;
  ++stats_.saves;
  phase_ = Phase::writing;
  warning_.clear();
  return before;
}

void CheckpointWriter::end_stall() {
  stats_.last_stall_seconds = steady_seconds() - save_start_;
  stats_.stall_seconds += stats_.last_stall_seconds;
}

std::optional<SaveOutcome> CheckpointWriter::save(const CheckpointMeta& meta,
                                                  std::span<const TensorBlock> blocks) {
  std::optional<SaveOutcome> before = begin_save(meta);
  ShardPlan plan = plan_shard_of_rank(blocks, meta.step, generation_, comm_.rank());
  tell(options_.observer, "snapshot");
  try {
    staging_.fill(plan, options_.copy_threads);
  } catch (const Error& e) {
    job_.fail(e.what());
    end_stall();
    return before;
  }
  tell(options_.observer, "snapshot_taken");
  const std::int64_t bytes = plan.tensors.empty() ? 0 : plan.bytes;
  start_writing({staging_.image(), bytes, std::move(plan.tensors)});
  end_stall();
  return before;
}

std::optional<SaveOutcome> CheckpointWriter::save(const CheckpointMeta& meta, Snapshot snapshot) {
  std::optional<SaveOutcome> before = begin_save(meta);
  start_writing(std::move(snapshot));
  end_stall();
  return before;
}

void CheckpointWriter::start_writing(Snapshot snapshot) {
  table_ = {{}, std::move(snapshot.tensors)};
  job_.start([this, image = snapshot.image, bytes = snapshot.bytes] { write(image, bytes); });
}

void CheckpointWriter::write(const std::byte* image, std::int64_t bytes) {
  const double start = steady_seconds();
  make_attempt_folder(attempt_folder());
  if (bytes > 0) {
    table_.shards = {write_shard(attempt_folder() / shard_file_name(comm_.rank()), image, bytes,
                                 options_.io, options_.observer)};
  }
  write_seconds_ = steady_seconds() - start;
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
  tell(options_.observer, "gather");
  std::vector<std::string> texts = all_gather_text(comm_, to_text(table_));
  phase_ = Phase::committing;
  if (comm_.rank() != 0) {
    job_.succeed();
    return;
  }
  job_.start([this, texts = std::move(texts)] {
    Manifest manifest;
    manifest.software = options_.software;
    manifest.created = utc_now();
    manifest.generation = generation_;
    manifest.read_back = options_.io.read_back;
    manifest.meta = meta_;
    std::vector<ShardTable> tables;
    for (const std::string& text : texts) {
      tables.push_back(parse_shard_table(text, "a rank's table"));
    }
    merge_tables(std::move(tables), manifest);
    saved_bytes_ = manifest.bytes();
    const std::lock_guard<std::mutex> names(names_);
    warning_ =
        commit({options_.folder, attempt_folder(), std::move(manifest)}, *lock_, options_.observer);
  });
}

// All jobs have ended here, so that rank 0 may clean up: before the others go on and, perhaps, try
// the same step again.
SaveOutcome CheckpointWriter::end_save(bool durable) {
  job_.wait();
  phase_ = Phase::idle;
  std::string message = job_.state() == BackgroundJob::State::failed ? job_.error() : warning_;
  if (comm_.rank() == 0 && !durable) {
    remove_attempt(message);
  }
  if (comm_.rank() == 0 && durable) {
    start_retention(message);
  }
  SaveOutcome outcome =
      share_outcome(comm_, {meta_.step, durable, false, message, std::exchange(saved_bytes_, 0),
                            steady_seconds() - save_start_});
  const std::int64_t lost = !durable && lock_ != nullptr && lock_->lost() ? 1 : 0;
  outcome.fenced = all_reduce_value(comm_, lost, ReduceOp::max) != 0;
  stats_.count(outcome);
  return outcome;
}

void CheckpointWriter::remove_attempt(std::string& message) const {
  try {
    remove_tree(attempt_folder());
  } catch (const Error& e) {
    message += fmt::format("{}{}", message.empty() ? "" : "; ", e.what());
  }
}

namespace {

// Not replaced by a newer one meanwhile.
bool is_as_listed(const fs::path& path, const std::vector<StepFolder>& steps) {
  const auto listed = std::find_if(steps.begin(), steps.end(),
                                   [&](const StepFolder& step) { return step.path == path; });
  const StepFolder now = inspect_step(path);
  return listed != steps.end() && listed->manifest && now.manifest &&
         now.manifest->generation == listed->manifest->generation;
}

}  // namespace

// In the background; if the last one still runs, the next save's will do its work too.
void CheckpointWriter::start_retention(std::string& message) {
  if (retention_.state() == BackgroundJob::State::running) {
    return;
  }
  if (retention_.state() == BackgroundJob::State::failed) {
    message += fmt::format("{}old checkpoints could not be deleted: {}",
                           message.empty() ? "" : "; ", retention_.error());
  }
  retention_.start([this] {
    const std::vector<StepFolder> steps = list_steps(options_.folder);
    for (const fs::path& path : plan_retention(steps, options_.retention)) {
      if (ending_) {
        return;  // the next run's will do the rest
      }
      fs::path trash;
      {
        const std::lock_guard<std::mutex> names(names_);
        lock_->check_still_mine();
        if (is_as_listed(path, steps)) {
          trash = take_step_away(path, generation_, options_.observer);
        }
      }
      if (!trash.empty()) {
        remove_trash(trash, options_.observer);
      }
    }
  });
}

std::optional<SaveOutcome> CheckpointWriter::finish() {
  std::optional<SaveOutcome> outcome;
  while (in_flight()) {
    if (!job_.wait_for(options_.patience)) {
      throw Hang(fmt::format(
          "step {}: writing to {} did not finish within {}: the file system does not respond. "
          "Check its servers and dmesg. Older checkpoints are intact; if saves normally take this "
          "long, raise comm.deadline.checkpoint",
          meta_.step, attempt_folder().string(), format_seconds(options_.patience.count())));
    }
    outcome = poll();
  }
  return outcome;
}

bool CheckpointWriter::quiet_within(std::chrono::duration<double> limit) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kAllDeletions{10};
  constexpr Seconds kOneDeletion{60};
  bool is_quiet = job_.wait_for(limit);
  if (!retention_.wait_for(std::min(limit, kAllDeletions))) {
    ending_ = true;
    is_quiet = retention_.wait_for(std::min(limit, kOneDeletion)) && is_quiet;
  }
  return (lock_ == nullptr || lock_->give_back(limit)) && is_quiet;
}

}  // namespace trireme
