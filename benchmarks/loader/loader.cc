#include "benchmarks/loader/loader.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/loader/synthetic_dataset.h"
#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/scratch_folders.h"
#include "io/data/loader.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"
#include "src/base/temporary_folder.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "src/policy/access.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;

// Micro-batches per step.
constexpr std::int64_t kMicros = 4;

StopRule loader_stop(const BenchLoaderOptions& options) {
  return StopRule::count_or_duration(options.rounds, options.duration);
}

// Does the same work twice: with the loader, and as a list of ranges to read.
class Bench {
 public:
  Bench(const BenchLoaderOptions& options, const fs::path& folder, const KeyRing& keys)
      : options_(options),
        dataset_(Dataset::open(folder, keys)),
        index_(dataset_.manifest(), options.sequence),
        sampler_(index_.samples(),
                 shuffle_block_samples(options.sequence, dataset_.manifest().token_bytes),
                 parse_shuffle(options.shuffle), 1),
        batches_(std::min(index_.samples(), options.max_samples) / (kMicros * options.micro_batch) *
                 kMicros) {
    if (batches_ < 1) {
      throw ConfigError("the dataset is smaller than one step of the benchmark: use a larger one");
    }
    for (const ShardEntry& entry : dataset_.manifest().shards) {
      files_.push_back(File::open_to_read(folder / entry.path));
    }
    list_ranges();
  }

  BenchLoaderResult run() {
    BenchLoaderResult result;
    result.is_encrypted = dataset_.manifest().is_encrypted();
    result.reads = static_cast<std::int64_t>(ranges_.size());
    for (const Range& range : ranges_) {
      result.bytes += range.bytes;
    }
    BenchProgress progress("bench loader", options_.rounds + 1, true);
    progress.stage("warming up");
    load();
    read();
    progress.done();
    progress.stage(loader_stop(options_).rounds() + ": load, plain reads");
    for (Sampling sampling(loader_stop(options_)); sampling.more(result.bytes_per_s.size());) {
      result.bytes_per_s.push_back(static_cast<double>(result.bytes) / load());
      result.pread_bytes_per_s.push_back(static_cast<double>(result.bytes) / read());
      progress.done();
    }
    result.wait_fraction = waited_;
    return result;
  }

 private:
  struct Range {
    std::size_t shard;
    std::int64_t offset;
    std::int64_t bytes;
  };

  void list_ranges() {
    BatchReads batch;
    for (std::int64_t i = 0; i < batches_; ++i) {
      batch.rows.clear();
      for (std::int64_t k = 0; k < options_.micro_batch; ++k) {
        batch.rows.push_back({k, sampler_(i * options_.micro_batch + k)});
      }
      batch.plan(index_);
      for (const BatchReads::Read& read : batch.reads) {
        const int width = dataset_.manifest().token_bytes;
        ranges_.push_back(
            {read.run.shard,
             dataset_.manifest().shards[read.run.shard].data_offset + read.run.first * width,
             read.run.count * width});
      }
    }
  }

  double load() {
    const Stopwatch watch;
    Loader loader(dataset_, sampler_,
                  {.sequence = options_.sequence,
                   .batches = kMicros * options_.micro_batch,
                   .micro_batch = options_.micro_batch,
                   .micros =
                       [](std::int64_t) {
                         return std::vector<std::int64_t>{0, 1, 2, 3};
                       },
                   .steps = batches_ / kMicros,
                   .depth_steps = 2,
                   .threads = options_.threads},
                  0);
    for (std::int64_t i = 0; i < batches_; ++i) {
      loader.next();
    }
    const double seconds = watch.seconds();
    waited_ = loader.wait_time().count() / seconds;
    return seconds;
  }

  double read() {
    const auto largest = std::ranges::max_element(ranges_, {}, &Range::bytes);
    std::vector<char> buffer(static_cast<std::size_t>(largest->bytes));
    const Stopwatch watch;
    for (const Range& range : ranges_) {
      files_[range.shard].read_exactly_at(range.offset, buffer.data(), range.bytes);
    }
    return watch.seconds();
  }

  const BenchLoaderOptions& options_;
  Dataset dataset_;
  SampleIndex index_;
  Sampler sampler_;
  std::int64_t batches_;
  std::vector<File> files_;
  std::vector<Range> ranges_;
  double waited_ = 0;
};

// Returns the site's keys if the dataset needs one. Throws PolicyError if the policy of the site is
// against reading it.
KeyRing keys_for(const fs::path& folder) {
  const DatasetManifest manifest = Dataset::open(folder).manifest();
  Access::of_this_host().check({Deed::read, Thing::dataset, folder, manifest.label});
  return manifest.is_encrypted() ? KeyRing(site_encryption_config(environ).keys) : KeyRing();
}

}  // namespace

BenchLoaderResult bench_loader(const BenchLoaderOptions& options) {
  check_alone();
  if (!options.data.empty()) {
    if (options.encrypt) {
      throw ConfigError("--encrypt is for random bytes: a dataset of --data is read as it is");
    }
    return Bench(options, options.data, keys_for(options.data)).run();
  }
  ScratchFolders scratch;
  const fs::path folder = scratch.make(temporary_folder());
  KeyRing keys;
  if (options.encrypt) {
    KeyFile::create(folder / "key", "");
    keys = KeyRing({"file:" + (folder / "key").string()});
  }
  write_random_tokens(folder / "data", 2, options.synthetic_bytes,
                      options.encrypt ? dataset_key_maker(keys) : DatasetKeyMaker());
  return Bench(options, folder / "data", keys).run();
}

nlohmann::ordered_json bench_loader_json(const BenchLoaderOptions& options,
                                         const BenchLoaderResult& result) {
  const double loaded = median(result.bytes_per_s);
  const double bare = median(result.pread_bytes_per_s);
  return {{"name", "loader"},
          {"params",
           {{"sequence", options.sequence},
            {"micro_batch", options.micro_batch},
            {"shuffle", options.shuffle},
            {"encrypted", result.is_encrypted},
            {"threads", options.threads},
            {"rounds", result.bytes_per_s.size()},
            {"bytes", result.bytes},
            {"reads", result.reads}}},
          {"metrics",
           {{"bytes_per_s", loaded},
            {"pread_bytes_per_s", bare},
            {"fraction_of_ceiling", loaded / bare},
            {"wait_fraction", result.wait_fraction}}},
          {"measurement", to_json({.warmup = 1,
                                   .stop = loader_stop(options),
                                   .sample = "a round over params.bytes bytes",
                                   .synchronized_by = kOneProcess})},
          {"samples",
           {{"bytes_per_s", samples_json(result.bytes_per_s)},
            {"pread_bytes_per_s", samples_json(result.pread_bytes_per_s)}}}};
}

}  // namespace trireme
