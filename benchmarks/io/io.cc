#include "benchmarks/io/io.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "benchmarks/io/io_folder.h"
#include "benchmarks/io/io_transfers.h"
#include "benchmarks/io/metadata.h"
#include "benchmarks/progress.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "src/base/error.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kDirectAlignment = 4096;
constexpr double kCachedPart = 2;  // files below this multiple of the memory may be cached

const char* name_of(IoCache cache) {
  return cache == IoCache::evict ? "evict" : cache == IoCache::keep ? "keep" : "bypass";
}

int count_nodes(const MpiSession& session) {
  const auto& places = session.places();
  return static_cast<int>(std::count_if(
      places.begin(), places.end(), [](const RankPlace& place) { return place.local_rank == 0; }));
}

void check_options(const BenchIoOptions& options) {
  options.layout.check();
  if (options.cache == IoCache::bypass && options.layout.transfer_bytes % kDirectAlignment != 0) {
    throw ConfigError("--cache bypass: direct I/O needs transfers (-t) of a multiple of 4 KiB");
  }
  if (options.api == IoApi::hdf5 && !options.layout.file_per_process) {
    throw ConfigError(
        "--api hdf5 needs -F: this HDF5 is the serial one, which has one writer per file");
  }
  if (options.api == IoApi::hdf5 && options.cache == IoCache::bypass) {
    throw ConfigError("--api hdf5: this HDF5 has no direct I/O; use --cache evict");
  }
}

class IoBench {
 public:
  IoBench(const BenchIoOptions& options, MpiSession& session, const IoFolder& folder,
          TableProgress& progress)
      : options_(options),
        session_(session),
        folder_(folder),
        progress_(progress),
        transfers_(options_, session) {}

  void run(BenchIoResult& result, const Json& common);

 private:
  std::filesystem::path file_of(int rank) const {
    return folder_.path() /
           (options_.layout.file_per_process ? fmt::format("data.{:08}", rank) : "data");
  }
  StopRule rule() const {
    return StopRule::count_or_duration(options_.repetitions, options_.duration);
  }

  void repetition(const IorSetup& setup);
  void forget(int rank);
  Json entry(bool writes, const BenchIoResult& result, const Json& common) const;

  const BenchIoOptions& options_;
  MpiSession& session_;
  const IoFolder& folder_;
  TableProgress& progress_;
  IoTransfers transfers_;
  std::vector<IorPhase> phases_;
  std::vector<std::vector<double>> seconds_[2];  // of reads and writes: by repetition and rank
  std::int64_t wrong_ = 0;
};

void IoBench::forget(int rank) {
  // One rank per node would do for a shared file; letting all ranks evict it reaches every node.
  if (options_.cache == IoCache::evict) {
    evict_from_cache(file_of(rank));
  }
  session_.world().barrier().wait();
}

void IoBench::repetition(const IorSetup& setup) {
  const int rank = session_.world().rank();
  const int other = (rank + setup.shift) % session_.world().size();
  for (const bool writes : {true, false}) {
    const int whose = writes ? rank : other;
    progress_.measuring(
        fmt::format("{}, repetition {}", writes ? "writing" : "reading", phases_.size() / 2 + 1));
    if (!writes) {
      forget(rank);
    }
    IoPhaseResult phase = transfers_.run(writes, file_of(whose), whose);
    phase.all.repetition = static_cast<int>(phases_.size() / 2);
    phases_.push_back(phase.all);
    seconds_[writes ? 1 : 0].push_back(phase.by_rank);
    wrong_ += phase.wrong;
    progress_.print(ior_row(setup, phase.all));
    progress_.done();
    if (writes ? options_.check_write : options_.check_read) {
      forget(rank);
      wrong_ += transfers_.count_wrong(file_of(other), other);
    }
  }
  // Each repetition begins without files, like the first one.
  session_.world().barrier().wait();
  if (options_.layout.file_per_process || rank == 0) {
    std::filesystem::remove(file_of(rank));
  }
  session_.world().barrier().wait();
}

Json IoBench::entry(bool writes, const BenchIoResult& result, const Json& common) const {
  std::vector<double> rates;
  std::vector<double> totals;
  double best = 0;
  IorPhase sum;
  for (const IorPhase& phase : phases_) {
    if (phase.writes == writes) {
      rates.push_back(phase.rate());
      totals.push_back(phase.total);
      best = std::max(best, phase.rate());
      sum.bytes += phase.bytes;
      sum.open += phase.open;
      sum.transfer += phase.transfer;
      sum.close += phase.close;
      sum.latency += phase.latency;
    }
  }
  const MedianInterval interval = median_interval(rates);
  const auto count = static_cast<double>(rates.size());
  std::vector<std::vector<double>> by_rank(static_cast<std::size_t>(options_.layout.ranks));
  for (const std::vector<double>& repetition : seconds_[writes ? 1 : 0]) {
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      by_rank[rank].push_back(1e3 * repetition[rank]);
    }
  }
  Json params = common;
  params["api"] = ior_name_of(options_.api);
  params["access"] = options_.layout.file_per_process ? "file_per_process" : "shared_file";
  params["block_bytes"] = options_.layout.block_bytes;
  params["transfer_bytes"] = options_.layout.transfer_bytes;
  params["segments"] = options_.layout.segments;
  params["order"] = options_.layout.random ? "random" : "sequential";
  params["shift"] = result.setup.shift;
  params["depth"] = transfers_.depth();
  params["cache"] = name_of(options_.cache);
  params["fsync"] = options_.fsync;
  params["stonewall_seconds"] = options_.stonewall;
  params["rounds"] = rates.size();
  return {{"name", writes ? "io_write" : "io_read"},
          {"params", params},
          {"metrics",
           {{"bytes_per_s", interval.median},
            {"bytes_per_s_low", interval.low},
            {"bytes_per_s_high", interval.high},
            {"best_bytes_per_s", best},
            {"moved_bytes", sum.bytes / static_cast<std::int64_t>(rates.size())},
            {"transfer_latency_us", 1e6 * sum.latency / count},
            {"open_ms", 1e3 * sum.open / count},
            {"transfer_ms", 1e3 * sum.transfer / count},
            {"close_ms", 1e3 * sum.close / count},
            {"wrong", wrong_}}},
          {"measurement",
           to_json({.warmup = 0,
                    .stop = rule(),
                    .sample = "open, transfers and close of all ranks, from the first begin to the "
                              "last end",
                    .synchronized_by = "two barriers"})},
          {"samples", {{"time_ms", samples_json(multiplied(totals, 1e3), by_rank)}}}};
}

void IoBench::run(BenchIoResult& result, const Json& common) {
  progress_.print(ior_options(result.setup) + ior_header());
  for (Sampling sampling(rule(), &session_.world()); sampling.more(phases_.size() / 2);) {
    repetition(result.setup);
  }
  progress_.print(ior_summary(result.setup, phases_));
  for (const bool writes : {true, false}) {
    add_row(result.results, entry(writes, result, common), options_.rows);
  }
  result.phases = phases_;
  result.wrong += wrong_;
}

// Warns of working sets that memory can hold, whose rates are those of memory.
void warn_of_caches(const BenchIoOptions& options, const IoFolder& folder,
                    const MpiSession& session, const Json& common) {
  const bool cached = options.cache == IoCache::keep &&
                      common.at("data_to_memory_ratio") != nullptr &&
                      common.at("data_to_memory_ratio").get<double>() < kCachedPart;
  if (folder.in_memory()) {
    say(fmt::format("warning: {} is a file system in memory ({}): this measures no disk",
                    options.folder.string(), folder.file_system()));
  } else if (options.data && cached && !options.reorder) {
    say("warning: the memory of a node can hold these files, so reads may come from the page "
        "cache:\nuse --cache evict or bypass, or -C on several nodes, or larger files (-b)");
  } else if (options.data && options.cache == IoCache::evict && !options.fsync) {
    say("note: without -e, writes end in the page cache and not on the disk");
  }
  if (options.reorder && session.places().size() == 1) {
    say("warning: -C does nothing with one rank, which reads its own file");
  }
}

TableProgress make_progress(const BenchIoOptions& options, MpiSession& session) {
  const std::int64_t phases = (options.data ? 2 : 0) + (options.metadata ? kMetadataOperations : 0);
  const int parts = (options.data ? 1 : 0) + (options.metadata ? 1 : 0);
  return {"bench io", options.repetitions * phases, session.world().rank() == 0,
          parts * options.duration};
}

}  // namespace

BenchIoResult bench_io(const BenchIoOptions& given, MpiSession& session) {
  BenchIoOptions options = given;
  const auto& places = session.places();
  options.layout.ranks = session.world().size();
  check_options(options);
  const IoFolder folder(options.folder, session);
  const int nodes = count_nodes(session);
  if (!folder.shared() && (!options.layout.file_per_process || options.reorder)) {
    throw ConfigError(fmt::format(
        "{} is a disk of each node: measure it with -F and without -C, since no node sees the "
        "files of the others",
        options.folder.string()));
  }
  const std::int64_t small = options.metadata ? options.files * (options.file_bytes + 4096) : 0;
  folder.check_room(std::max(options.data ? options.layout.bytes_per_rank() : 0, small), session);

  const bool neighbours = places.size() > 1 && places[0].host == places[1].host;
  BenchIoResult result;
  result.results = Json::array();
  result.setup = {.layout = options.layout,
                  .api = std::string(ior_name_of(options.api)),
                  .file = (folder.path() / "data").lexically_normal().string(),
                  .nodes = nodes,
                  .ranks_per_node = places[0].local_size,
                  .shift = options.reorder ? reader_shift(options.task_offset, nodes,
                                                          neighbours ? places[0].local_size : 1,
                                                          options.layout.ranks)
                                           : 0,
                  .task_offset = options.task_offset,
                  .repetitions = options.repetitions,
                  .seconds = options.duration,
                  .stonewall_seconds = options.stonewall};
  const double memory = static_cast<double>(available_memory().bytes);
  const Json common = {{"ranks", options.layout.ranks},
                       {"nodes", nodes},
                       {"file_system", folder.file_system()},
                       {"data_to_memory_ratio",
                        memory > 0 ? Json(static_cast<double>(options.layout.bytes_per_rank()) *
                                          places[0].local_size / memory)
                                   : Json(nullptr)}};
  if (session.world().rank() == 0) {
    warn_of_caches(options, folder, session, common);
  }
  TableProgress progress = make_progress(options, session);
  if (options.data) {
    IoBench(options, session, folder, progress).run(result, common);
  }
  if (options.metadata) {
    Json about = common;
    about.erase("data_to_memory_ratio");
    for (Json& each :
         bench_metadata(options, folder.path(), result.setup.shift, about, session, progress)) {
      add_row(result.results, std::move(each), options.rows);
    }
  }
  session.world().barrier().wait();  // nobody removes the folder while others use it
  return result;
}

}  // namespace trireme
