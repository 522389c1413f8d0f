#include "benchmarks/ckpt/ckpt.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/ckpt/dd.h"
#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/scratch_folders.h"
#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/memory/memory_target.h"
#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/writer.h"
#include "mpi/self_communicator.h"
#include "src/base/file.h"
#include "src/base/philox.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/keys/key_file.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

StopRule ckpt_stop(const BenchCkptOptions& options) {
  return StopRule::count_or_duration(options.rounds, options.duration);
}

double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

// State is the state of training as a checkpoint sees it: parameters and two moments, each a flat
// buffer of tensors in the sizes of a transformer with 768 channels.
struct State {
  PageBuffer memory;
  std::vector<TensorBlock> blocks;
  std::vector<TensorBlock> targets;  // the same blocks in `target`
  PageBuffer target;
  std::int64_t bytes = 0;
};

void add_block(State& state, const std::string& name, std::int64_t elements) {
  const Shape shape{elements};
  const Extent whole = Extent::whole(shape);
  state.blocks.push_back(
      {name, shape, whole, {state.memory.data() + state.bytes, elements, DType::f32}});
  state.targets.push_back(
      {name, shape, whole, {state.target.data() + state.bytes, elements, DType::f32}});
  state.bytes += 4 * elements;
}

State make_state(std::int64_t bytes) {
  constexpr std::array<std::int64_t, 6> kElements = {768,       2304 * 768, 2304,
                                                     768 * 768, 768,        3072 * 768};
  State state{PageBuffer(bytes), {}, {}, PageBuffer(bytes), 0};
  auto* words = reinterpret_cast<std::uint32_t*>(state.memory.data());
  for (std::int64_t i = 0; i < bytes / 4; ++i) {
    words[i] = static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(i)));
  }
  std::memset(state.target.data(), 0, static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; bytes - state.bytes >= 4 * 64; ++i) {
    const std::int64_t room = (bytes - state.bytes) / 4 / 64 * 64;
    add_block(state, fmt::format("tensor.{:06}", i), std::min(kElements[i % 6], room));
  }
  return state;
}

double plain_copy_seconds(const State& state, int threads) {
  const std::int64_t part = round_up(state.bytes / threads + 1, kDataAlignment);
  return seconds_of([&] {
    parallel_for(threads, threads, [&](std::int64_t i) {
      const std::int64_t first = std::min(i * part, state.bytes);
      std::memcpy(state.target.data() + first, state.memory.data() + first,
                  static_cast<std::size_t>(std::min(part, state.bytes - first)));
    });
  });
}

struct CkptTimings {
  std::vector<double> copy, stall, write, load, dd_write, dd_read, memory_stall, memory_load;
  std::vector<double> encrypted_stall, encrypted_write, encrypted_load;
  double write_with_read_back = 0;
};

// MemoryBench saves to memory and loads from there, as one rank on one node. The memory is reused
// in every round, as in a run.
class MemoryBench {
 public:
  MemoryBench(Communicator& comm, const fs::path& folder, const State& state, int threads)
      : comm_(comm),
        state_(state),
        node_{folder, "bench"},
        nodes_(map_nodes(comm, node_)),
        target_(comm, nodes_, options(threads)),
        writer_(comm, target_) {
    std::string fault = target_.open(std::nullopt);
    fault = fault.empty() ? target_.reserve(state.blocks) : fault;
    if (!fault.empty()) {
      throw IoError(fault);
    }
  }

  double save(std::int64_t step) {
    CheckpointMeta meta;
    meta.step = step;
    (void)writer_.save(meta, state_.blocks);
    const auto outcome = writer_.finish();
    if (!outcome->durable) {
      throw IoError(outcome->message);
    }
    return writer_.stats().last_stall_seconds;
  }

  double load() {
    ResumeOptions options;
    options.node = node_;
    options.nodes = &nodes_;
    options.identity.run = "bench";
    return resume(comm_, node_.folder / "none", state_.targets, options)->load.seconds;
  }

 private:
  MemoryOptions options(int threads) const {
    MemoryOptions options;
    options.node = node_;
    options.partner = false;
    options.generation = 1;
    options.run = "bench";
    options.copy_threads = threads;
    return options;
  }

  Communicator& comm_;
  const State& state_;
  NodeMemory node_;
  NodeMap nodes_;
  MemoryTarget target_;
  CheckpointWriter writer_;
};

class CkptBench {
 public:
  // memory: a folder on a tmpfs, or "".
  CkptBench(const BenchCkptOptions& options, const fs::path& folder, const fs::path& memory)
      : options_(options), folder_(folder), state_(make_state(options.bytes)) {
    if (!memory.empty()) {
      memory_.emplace(comm_, memory, state_, options.threads);
    }
    if (options.encrypt) {
      KeyFile::create(folder / "key", "bench");
      keys_.emplace(comm_, KeyOptions{{"file:" + (folder / "key").string()}, true});
      keys_->prepare_to_save();
    }
  }

  CkptTimings run() {
    CkptTimings timings;
    BenchProgress progress("bench ckpt", options_.rounds + 2, true);
    progress.stage("warming up");
    CkptTimings discarded;
    one_round(discarded);
    progress.done();
    progress.stage(ckpt_stop(options_).rounds() + ": save, load, dd");
    for (Sampling sampling(ckpt_stop(options_)); sampling.more(timings.copy.size());) {
      one_round(timings);
      progress.done();
    }
    progress.stage("a save that is read back");
    timings.write_with_read_back = save(true).second;
    progress.done();
    return timings;
  }
  std::int64_t bytes() const { return state_.bytes; }

 private:
  // Returns the seconds of the stall, and those from then until the checkpoint is durable.
  std::pair<double, double> save(bool read_back, std::shared_ptr<const FolderKey> key = nullptr) {
    DiskOptions writing{.folder = folder_ / "checkpoints"};
    writing.io.read_back = read_back;
    writing.copy_threads = options_.threads;
    DiskTarget target(comm_, writing);
    target.reserve(state_.blocks);
    CheckpointWriter writer(comm_, target);
    CheckpointMeta meta;
    meta.step = ++step_;
    writer.save(meta, state_.blocks, nullptr, std::move(key));
    std::optional<SaveOutcome> outcome;
    const double seconds = seconds_of([&] { outcome = writer.finish(); });
    if (!outcome->durable) {
      throw IoError(outcome->message);
    }
    return {writer.stats().last_stall_seconds, seconds};
  }

  void forget() { std::memset(state_.target.data(), 0, static_cast<std::size_t>(state_.bytes)); }
  void check_loaded() const {
    if (std::memcmp(state_.target.data(), state_.memory.data(),
                    static_cast<std::size_t>(state_.bytes)) != 0) {
      throw DataError("what was loaded is not what was saved");
    }
  }

  // Loads the checkpoint that was just saved, and removes it. Returns the seconds of the load.
  double load() {
    forget();
    ResumeOptions options;
    options.keys = keys_ ? &*keys_ : nullptr;
    const auto resumed = resume(comm_, folder_ / "checkpoints", state_.targets, options);
    check_loaded();
    fs::remove_all(resumed->folder);
    return resumed->load.seconds;
  }

  void one_round(CkptTimings& timings) {
    timings.copy.push_back(plain_copy_seconds(state_, options_.threads));
    const auto [stall, write] = save(false);
    timings.stall.push_back(stall);
    timings.write.push_back(write);
    timings.load.push_back(load());
    if (keys_) {
      const auto [encrypted_stall, encrypted_write] = save(false, keys_->next());
      timings.encrypted_stall.push_back(encrypted_stall);
      timings.encrypted_write.push_back(encrypted_write);
      timings.encrypted_load.push_back(load());
    }
    if (memory_) {
      timings.memory_stall.push_back(memory_->save(step_));
      forget();
      timings.memory_load.push_back(memory_->load());
      check_loaded();
    }
    const fs::path file = folder_ / "dd";
    timings.dd_write.push_back(dd_write_seconds(file, state_.bytes));
    timings.dd_read.push_back(dd_read_seconds(file));
    fs::remove(file);
  }

  BenchCkptOptions options_;
  fs::path folder_;
  State state_;
  SelfCommunicator comm_;
  std::int64_t step_ = 0;
  std::optional<MemoryBench> memory_;
  std::optional<StepKeys> keys_;  // if encrypted checkpoints are measured
};

nlohmann::ordered_json entry(const std::string& name, const nlohmann::ordered_json& params,
                             const StopRule& stop, double bytes, const std::vector<double>& ours,
                             const std::vector<double>& ceiling) {
  return {
      {"name", name},
      {"params", params},
      {"metrics",
       {{"seconds", median(ours)},
        {"bytes_per_s", bytes / median(ours)},
        {"ceiling_bytes_per_s", bytes / median(ceiling)},
        {"fraction_of_ceiling", median(ceiling) / median(ours)}}},
      {"measurement", to_json({.warmup = 1,
                               .stop = stop,
                               .sample = "one operation on the whole state",
                               .synchronized_by = kOneProcess})},
      {"samples", {{"seconds", samples_json(ours)}, {"ceiling_seconds", samples_json(ceiling)}}}};
}

// Throws ConfigError unless there is memory for two copies of the state, and IoError unless the
// disk has space for one.
void check_room(const BenchCkptOptions& options, const std::filesystem::path& folder) {
  const std::int64_t memory = available_memory().bytes;
  if (options.bytes > memory / 2) {
    throw ConfigError(
        fmt::format("--bytes {}: this needs twice as much memory, of which {} are available: give "
                    "fewer bytes",
                    options.bytes, format_bytes(memory)));
  }
  const std::int64_t disk = free_bytes(folder);
  if (options.bytes > disk) {
    throw IoError(fmt::format(
        "the disk of {} is too small: the state has {}, and {} are free. Make it smaller "
        "with --bytes, or name another disk with --dir",
        options.folder.string(), format_bytes(options.bytes), format_bytes(disk)));
  }
}

}  // namespace

nlohmann::ordered_json bench_ckpt(const BenchCkptOptions& given) {
  check_alone();
  BenchCkptOptions options = given;
  options.threads = given.threads > 0 ? given.threads : available_processors();
  options.bytes = std::max<std::int64_t>(options.bytes / 4096 * 4096, 1 << 20);
  ScratchFolders scratch;
  const fs::path folder = scratch.make(options.folder);
  check_room(options, folder);
  CkptBench bench(options, folder,
                  options.memory.empty() ? fs::path() : scratch.make(options.memory));
  const CkptTimings timings = bench.run();
  const auto bytes = static_cast<double>(bench.bytes());
  const nlohmann::ordered_json params = {{"bytes", bench.bytes()},
                                         {"folder", options.folder.string()},
                                         {"threads", options.threads},
                                         {"rounds", timings.copy.size()}};
  const StopRule stop = ckpt_stop(options);
  auto stall = entry("ckpt_stall", params, stop, bytes, timings.stall, timings.copy);
  stall["metrics"]["ratio"] = median(timings.stall) / median(timings.copy);
  auto write = entry("ckpt_write", params, stop, bytes, timings.write, timings.dd_write);
  write["metrics"]["with_read_back_bytes_per_s"] = bytes / timings.write_with_read_back;
  nlohmann::ordered_json entries = {
      stall, write, entry("ckpt_load", params, stop, bytes, timings.load, timings.dd_read)};
  if (!timings.memory_stall.empty()) {
    auto memory =
        entry("ckpt_memory_stall", params, stop, bytes, timings.memory_stall, timings.copy);
    memory["metrics"]["ratio"] = median(timings.memory_stall) / median(timings.copy);
    entries.push_back(memory);
    entries.push_back(
        entry("ckpt_memory_load", params, stop, bytes, timings.memory_load, timings.copy));
  }
  if (!timings.encrypted_stall.empty()) {
    auto sealed =
        entry("ckpt_encrypted_stall", params, stop, bytes, timings.encrypted_stall, timings.stall);
    sealed["metrics"]["ratio"] = median(timings.encrypted_stall) / median(timings.stall);
    entries.push_back(sealed);
    entries.push_back(
        entry("ckpt_encrypted_write", params, stop, bytes, timings.encrypted_write, timings.write));
    entries.push_back(
        entry("ckpt_encrypted_load", params, stop, bytes, timings.encrypted_load, timings.load));
  }
  return entries;
}

}  // namespace trireme
