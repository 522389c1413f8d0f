#include "benchmarks/ckpt/model_ckpt.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/ckpt/model_state.h"
#include "benchmarks/io/io_folder.h"
#include "benchmarks/progress.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/writer.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCopies = 3;  // the state, the image that is written, what is loaded

class ModelCkptBench {
 public:
  ModelCkptBench(const ModelCkptOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        state_(find_model_state(options.model)),
        parts_(state_.parts(options.bytes, world().rank(), world().size())),
        folder_(options.folder, session) {
    if (!folder_.shared()) {
      throw ConfigError(fmt::format(
          "{} is a disk of each node: a checkpoint needs a file system that all nodes share",
          options.folder.string()));
    }
    for (const StatePart& part : parts_) {
      own_bytes_ += part.own * part.element_bytes;
    }
    total_bytes_ = all_reduce_value(world(), own_bytes_, ReduceOp::sum);
    check_memory();
    folder_.check_room(all_reduce_value(world(), own_bytes_, ReduceOp::max), session);
    saved_ = PageBuffer(std::max<std::int64_t>(own_bytes_, 1));
    loaded_ = PageBuffer(std::max<std::int64_t>(own_bytes_, 1));
    add_blocks();
  }

  Json run();

 private:
  struct Times {
    std::vector<double> all;  // until all ranks have ended, by round
    std::vector<double> own;  // of this rank
  };

  Communicator& world() const { return session_.world(); }
  StopRule rule() const { return StopRule::count_or_duration(options_.rounds, options_.duration); }
  void check_memory() const;
  void add_blocks();
  void round(Times& writes, std::vector<double>& stalls, Times& reads);
  Json entry(const char* name, const Times& times) const;

  ModelCkptOptions options_;
  MpiSession& session_;
  ModelState state_;
  std::vector<StatePart> parts_;
  IoFolder folder_;
  std::int64_t own_bytes_ = 0;
  std::int64_t total_bytes_ = 0;
  PageBuffer saved_;
  PageBuffer loaded_;
  std::vector<TensorBlock> blocks_;   // in saved_
  std::vector<TensorBlock> targets_;  // the same blocks in loaded_
  std::int64_t step_ = 0;
};

void ModelCkptBench::check_memory() const {
  const RankPlace& place = session_.place();
  const bool fits =
      kCopies * own_bytes_ <= available_memory().bytes / std::max(place.local_size, 1);
  if (all_reduce_value(world(), std::int64_t{fits ? 0 : 1}, ReduceOp::sum) > 0) {
    throw ConfigError(fmt::format(
        "--bytes: the ranks of a node need {} times their part of the state, which is {} here, and "
        "{} has {} of memory for {}: give fewer bytes",
        kCopies, format_bytes(own_bytes_), place.host, format_bytes(available_memory().bytes),
        counted(place.local_size, "rank")));
  }
}

void ModelCkptBench::add_blocks() {
  auto* words = reinterpret_cast<std::uint32_t*>(saved_.data());
  const std::uint64_t seed = static_cast<std::uint64_t>(world().rank()) << 40;
  for (std::int64_t i = 0; i < own_bytes_ / 4; ++i) {
    words[i] = static_cast<std::uint32_t>(mix64(seed + static_cast<std::uint64_t>(i)));
  }
  std::int64_t at = 0;
  // Parts of four bytes come first, so that every part is aligned.
  for (const std::int64_t width : {4, 2}) {
    for (const StatePart& part : parts_) {
      if (part.element_bytes == width) {
        const Extent extent = Extent::flat(part.first, part.own);
        const DType dtype = width == 4 ? DType::f32 : DType::bf16;
        blocks_.push_back(
            {part.tensor, Shape{part.elements}, extent, {saved_.data() + at, part.own, dtype}});
        targets_.push_back(
            {part.tensor, Shape{part.elements}, extent, {loaded_.data() + at, part.own, dtype}});
        at += part.own * width;
      }
    }
  }
}

void ModelCkptBench::round(Times& writes, std::vector<double>& stalls, Times& reads) {
  const auto checkpoints = folder_.path() / "checkpoints";
  {
    DiskOptions writing{.folder = checkpoints};
    writing.io.read_back = false;
    writing.copy_threads = options_.threads;
    DiskTarget target(world(), writing);
    target.reserve(blocks_);
    CheckpointWriter writer(world(), target);
    CheckpointMeta meta;
    meta.step = ++step_;
    world().barrier().wait();
    const Stopwatch watch;
    writer.save(meta, blocks_);
    const auto outcome = writer.finish();
    writes.all.push_back(all_reduce_value(world(), watch.seconds(), ReduceOp::max));
    if (!outcome->durable) {
      throw IoError(outcome->message);
    }
    writes.own.push_back(writer.stats().last_stall_seconds + writer.stats().last_write_seconds);
    stalls.push_back(all_reduce_value(world(), writer.stats().last_stall_seconds, ReduceOp::max));
  }
  std::memset(loaded_.data(), 0, static_cast<std::size_t>(own_bytes_));
  world().barrier().wait();
  const Stopwatch watch;
  const auto resumed = resume(world(), checkpoints, targets_);
  const double own = watch.seconds();
  reads.own.push_back(own);
  reads.all.push_back(all_reduce_value(world(), own, ReduceOp::max));
  const bool same =
      std::memcmp(loaded_.data(), saved_.data(), static_cast<std::size_t>(own_bytes_)) == 0;
  if (all_reduce_value(world(), std::int64_t{same ? 0 : 1}, ReduceOp::sum) > 0) {
    throw DataError("what was loaded is not what was saved");
  }
  if (world().rank() == 0) {
    std::filesystem::remove_all(resumed->folder);
  }
  world().barrier().wait();
}

Json ModelCkptBench::entry(const char* name, const Times& times) const {
  const auto by_rank = gather_by_rank(world(), times.own);
  const auto bytes_of = gather_by_rank(world(), {static_cast<double>(own_bytes_)});
  const MedianInterval seconds = median_interval(times.all);
  double slowest_rate = static_cast<double>(total_bytes_) / seconds.median;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    slowest_rate =
        std::min(slowest_rate, bytes_of[rank][0] / median_interval(by_rank[rank]).median);
  }
  const auto bytes = static_cast<double>(total_bytes_);
  return {{"name", name},
          {"params",
           {{"model", state_.model},
            {"parameters", state_.parameters},
            {"full_bytes", state_.bytes()},
            {"bytes", total_bytes_},
            {"zero", state_.zero},
            {"replicas", state_.replicas_of(world().size())},
            {"ranks", world().size()},
            {"threads", options_.threads},
            {"file_system", folder_.file_system()},
            {"rounds", times.all.size()}}},
          {"metrics",
           {{"seconds", seconds.median},
            {"bytes_per_s", bytes / seconds.median},
            {"bytes_per_s_low", bytes / seconds.high},
            {"bytes_per_s_high", bytes / seconds.low},
            {"slowest_rank_bytes_per_s", slowest_rate}}},
          {"measurement",
           to_json({.warmup = 1,
                    .stop = rule(),
                    .sample = "one checkpoint of all ranks, from a barrier until the last rank "
                              "has ended",
                    .synchronized_by = "a barrier"})},
          {"samples", {{"seconds", samples_json(times.all, by_rank)}}}};
}

Json ModelCkptBench::run() {
  BenchProgress progress("bench ckpt", options_.rounds + 1, world().rank() == 0);
  progress.stage("warming up");
  Times writes;
  Times reads;
  std::vector<double> stalls;
  {
    Times ignored;
    std::vector<double> none;
    round(ignored, none, ignored);
  }
  progress.done();
  progress.stage(rule().rounds() + ": save, load");
  for (Sampling sampling(rule(), &world()); sampling.more(writes.all.size());) {
    round(writes, stalls, reads);
    progress.done();
  }
  progress.finish();
  Json write = entry("ckpt_model_write", writes);
  write["metrics"]["stall_ms"] = 1e3 * median_interval(stalls).median;
  return Json::array({write, entry("ckpt_model_read", reads)});
}

}  // namespace

Json bench_model_ckpt(const ModelCkptOptions& given, MpiSession& session) {
  ModelCkptOptions options = given;
  options.threads = given.threads > 0 ? given.threads : session.place().threads();
  return ModelCkptBench(options, session).run();
}

}  // namespace trireme
