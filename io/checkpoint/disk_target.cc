#include "io/checkpoint/disk_target.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/stat.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/shard_plan.h"
#include "mpi/agreement.h"
#include "src/base/fault.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns whether the step at `path` is still the one in the list, not a newer one of that number.
bool is_as_listed(const fs::path& path, const std::vector<StepFolder>& steps) {
  const auto listed = std::find_if(steps.begin(), steps.end(),
                                   [&](const StepFolder& step) { return step.path == path; });
  const StepFolder now = inspect_step(path);
  return listed != steps.end() && listed->manifest && now.manifest &&
         now.manifest->generation == listed->manifest->generation;
}

// Every rank calls this; the first one creates the folder.
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

DiskTarget::DiskTarget(Communicator& comm, DiskOptions options)
    : options_(std::move(options)), rank_(comm.rank()) {
  (void)plan_retention({}, options_.retention);
  if (options_.copy_threads == 0) {
    options_.copy_threads = available_processors();
  }
  const std::string generation = run_on_root(comm, [this] {
    make_directories(options_.folder);
    lock_ = std::make_unique<RunLock>(options_.folder, options_.force, options_.lock);
    clean_remains(options_.folder, lock_->generation());
    return std::to_string(lock_->generation());
  });
  generation_ = std::stoll(generation);
}

void DiskTarget::distrust(const std::vector<StepIdentity>& damaged) {
  std::vector<StepIdentity>& known = options_.retention.damaged;
  known.insert(known.end(), damaged.begin(), damaged.end());
}

void DiskTarget::reserve(std::span<const TensorBlock> blocks) {
  reserve_image(plan_shard(blocks, {}).bytes + kDataAlignment);
}

void DiskTarget::reserve_image(std::int64_t bytes) {
  if (round_up(bytes, kDataAlignment) > image_.bytes()) {
    image_ = PageBuffer();  // free the old memory first
    image_ = PageBuffer(bytes);
    touch(image_.data(), image_.bytes(), options_.copy_threads);
  }
}

fs::path DiskTarget::attempt_folder() const {
  return options_.folder /
         TransientName{TransientName::Kind::attempt, step_, generation_}.to_string();
}

void DiskTarget::begin(std::int64_t step, std::shared_ptr<const FolderKey> key) {
  step_ = step;
  key_ = std::move(key);
}

Snapshot DiskTarget::take(std::span<const TensorBlock> blocks, std::function<void()> ready) {
  ShardPlan plan = plan_shard_of_rank(blocks, step_, generation_, rank_);
  fault("ckpt.snapshot");
  reserve_image(plan.bytes);
  return make_snapshot(
      std::move(plan), image_.data(),
      {options_.copy_threads, std::move(ready), [] { fault("ckpt.snapshot_taken"); },
       data_key(key_), shard_file_name(rank_)});
}

std::optional<StoredShard> DiskTarget::write(const Snapshot& snapshot) {
  const fs::path folder = attempt_folder();
  make_attempt_folder(folder);
  if (snapshot.bytes == 0) {
    return std::nullopt;
  }
  return write_shard(folder / shard_file_name(rank_), snapshot, options_.io);
}

void DiskTarget::before_gather() { fault("ckpt.gather"); }

std::string DiskTarget::commit(Manifest manifest) {
  manifest.software = options_.software;
  manifest.generation = generation_;
  manifest.read_back = options_.io.read_back;
  const std::lock_guard<std::mutex> names(names_);
  return trireme::commit(
      {options_.folder, attempt_folder(), std::move(manifest), options_.provenance, key_}, *lock_);
}

std::string DiskTarget::settle(bool durable) {
  return rank_ != 0 ? "" : durable ? start_retention() : remove_attempt();
}

std::string DiskTarget::remove_attempt() const {
  try {
    remove_tree(attempt_folder());
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Starts the deletion of old steps in the background. If the previous one still runs, the one after
// the next save, or at the end of the run, catches up.
std::string DiskTarget::start_retention() {
  retention_is_due_ = retention_.state() == BackgroundJob::State::running;
  if (retention_is_due_) {
    return "";
  }
  std::string warning;
  if (retention_.state() == BackgroundJob::State::failed) {
    warning = fmt::format("old checkpoints could not be deleted: {}", retention_.error());
  }
  retention_.start([this] { delete_old_steps(); });
  return warning;
}

void DiskTarget::delete_old_steps() {
  const std::vector<StepFolder> steps = list_steps(options_.folder);
  for (const fs::path& path : plan_retention(steps, options_.retention)) {
    if (ending_) {
      return;  // a later run deletes the rest
    }
    fs::path trash;
    {
      const std::lock_guard<std::mutex> names(names_);
      lock_->check_still_mine();
      if (is_as_listed(path, steps)) {
        trash = take_step_away(path, generation_);
      }
    }
    if (!trash.empty()) {
      remove_trash(trash);
      note_deleted(path, steps);
    }
  }
}

void DiskTarget::note_deleted(const fs::path& path, const std::vector<StepFolder>& steps) const {
  const auto step = std::find_if(steps.begin(), steps.end(),
                                 [&](const StepFolder& each) { return each.path == path; });
  if (options_.deleted && step != steps.end()) {
    options_.deleted(*step);
  }
}

bool DiskTarget::quiet_within(std::chrono::duration<double> limit) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kAllDeletions{10};
  constexpr Seconds kOneDeletion{60};
  bool is_quiet = true;
  bool has_deleted = retention_.wait_for(std::min(limit, kAllDeletions));
  if (has_deleted && retention_is_due_) {
    (void)start_retention();
    has_deleted = retention_.wait_for(std::min(limit, kAllDeletions));
  }
  if (!has_deleted) {
    ending_ = true;
    is_quiet = retention_.wait_for(std::min(limit, kOneDeletion));
  }
  return (lock_ == nullptr || lock_->give_back(limit)) && is_quiet;
}

}  // namespace trireme
