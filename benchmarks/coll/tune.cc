#include "benchmarks/coll/tune.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "benchmarks/coll/contestant.h"
#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/table_buffers.h"
#include "benchmarks/table_time.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::array<Backend, 4> kBackends = {Backend::mpi, Backend::shm, Backend::ucx,
                                              Backend::hierarchical};

// Candidate is a backend to compare.
struct Candidate {
  Backend backend;
  std::unique_ptr<Communicator> comm;
};

class TuneBench {
 public:
  TuneBench(const BenchCollOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        progress_("bench coll", rows(options, session.world().size()), session.world().rank() == 0),
        buffers_(
            session.world(),
            {.device = Device::cpu(), .local_ranks = session.place().local_size, .clear = clear}) {
    for (const Backend backend : kBackends) {
      add(backend);
    }
  }

  TuneResult run() {
    TuneResult result{empty_tuning(), nlohmann::ordered_json::array(), {}};
    Communicator& world = session_.world();
    const AgreedClock clock = agreed_clock(world);
    std::int64_t left = std::ssize(options_.ops);
    for (const Collective op : options_.ops) {
      const std::vector<std::int64_t> sizes = distinct_sizes(op, options_, world.size());
      TableTime limit(table_seconds(options_.duration, clock(), left--), std::ssize(sizes),
                      agreed_clock(world));
      std::vector<std::pair<std::int64_t, Backend>> fastest;
      std::optional<std::size_t> chosen;
      for (const std::int64_t bytes : sizes) {
        const std::string size = format_bytes(bytes);
        if (limit.begins(size, static_cast<double>(bytes)) && buffers_.holds(size, bytes)) {
          chosen = measure({op, options_.reduction, 0}, bytes, chosen, limit, result.results);
          fastest.emplace_back(bytes, candidates_[*chosen].backend);
        } else {
          result.left_out.push_back(fmt::format("{}, {}", name_of(op), size));
        }
        progress_.done();
      }
      progress_.print(limit.text() + buffers_.text());
      const auto entries = tuning_entries(op, fastest);
      result.tuning.entries.insert(result.tuning.entries.end(), entries.begin(), entries.end());
    }
    return result;
  }

 private:
  static std::int64_t rows(const BenchCollOptions& options, int ranks) {
    std::size_t rows = 0;
    for (const Collective op : options.ops) {
      rows += distinct_sizes(op, options, ranks).size();
    }
    return static_cast<std::int64_t>(rows);
  }
  static void clear(const View& view) {
    std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
  }
  // Adds a backend, unless it cannot connect the ranks. All ranks agree on this.
  void add(Backend backend) {
    std::unique_ptr<Communicator> comm;
    std::string reason;
    try {
      comm = session_.make_world(backend);
    } catch (const ConfigError& error) {
      reason = error.what();
    }
    const std::int64_t made = comm == nullptr ? 0 : 1;
    if (all_reduce_value(session_.world(), made, ReduceOp::min) == 1) {
      (void)buffers_.add(comm->memory());
      candidates_.push_back({backend, std::move(comm)});
    } else {
      progress_.print(fmt::format("# {} is not available: {}\n", name_of(backend),
                                  reason.empty() ? "another rank cannot use it" : reason));
    }
  }

  Tuning empty_tuning() const {
    Tuning tuning;
    std::set<std::string> hosts;
    for (const RankPlace& place : session_.places()) {
      hosts.insert(place.host);
      tuning.ranks_per_host = std::max(tuning.ranks_per_host, place.local_size);
    }
    tuning.ranks = session_.world().size();
    tuning.hosts = static_cast<int>(hosts.size());
    return tuning;
  }

  // Runs the form of the operation that needs no copy: all_to_all out of place, the others in
  // place.
  void run(std::size_t candidate, const CollectiveTask& task, std::int64_t elements) {
    const View a = buffers_.first(candidate).view(options_.dtype).slice(0, elements);
    const View b = buffers_.second(candidate).view(options_.dtype).slice(0, elements);
    const auto contestant = make_contestant(*candidates_[candidate].comm, task);
    if (task.op == Collective::all_to_all) {
      contestant->out_of_place(a, b);
    } else {
      contestant->in_place(a, b);
    }
  }

  // Returns the index of the best candidate.
  std::size_t measure(const CollectiveTask& task, std::int64_t bytes,
                      std::optional<std::size_t> before, TableTime& limit,
                      nlohmann::ordered_json& results) {
    Communicator& world = session_.world();
    progress_.measuring(fmt::format("{}, {}", name_of(task.op), format_bytes(bytes)));
    const CollectiveSize size = cut_size(task.op, bytes, options_.dtype, world.size());
    std::vector<std::function<void()>> ways;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      ways.emplace_back([this, c, task, elements = size.elements] { run(c, task, elements); });
    }
    TurnOptions turns = options_.turns;
    turns.seconds = limit.left();
    turns.warmup_seconds = turns.seconds / (4 * static_cast<double>(ways.size()));
    const auto samples = take_turns(world, ways, turns);
    std::vector<double> medians;
    std::string line = fmt::format("{:<15} {:>12}", name_of(task.op), bytes);
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const double seconds = median(samples[c].seconds);
      medians.push_back(seconds);
      line += fmt::format("  {} {:.1f} us", name_of(candidates_[c].backend), seconds * 1e6);
      results.push_back({{"name", "coll_tune"},
                         {"params",
                          {{"op", name_of(task.op)},
                           {"bytes", bytes},
                           {"dtype", nccl_name_of(options_.dtype)},
                           {"backend", name_of(candidates_[c].backend)},
                           {"ranks", world.size()}}},
                         {"metrics", {{"time_us", seconds * 1e6}}},
                         {"measurement", to_json(how_turns_measure(turns))},
                         {"samples",
                          {{"time_us", samples_json(multiplied(samples[c].seconds, 1e6),
                                                    multiplied(samples[c].by_rank, 1e6))}}}});
    }
    const std::size_t chosen = choose_backend(medians, before);
    double spare = 0;
    for (const TurnSamples& each : samples) {
      spare += spare_seconds(each.seconds, each.aggregated);
    }
    limit.ends(spare);
    progress_.print(fmt::format("{}  -> {}\n", line, name_of(candidates_[chosen].backend)));
    return chosen;
  }

  BenchCollOptions options_;
  MpiSession& session_;
  TableProgress progress_;
  std::vector<Candidate> candidates_;
  TableBuffers buffers_;
};

}  // namespace

std::size_t choose_backend(const std::vector<double>& seconds, std::optional<std::size_t> before) {
  constexpr double kWorthAChange = 1.05;
  const auto best = std::min_element(seconds.begin(), seconds.end());
  if (before && seconds.at(*before) <= kWorthAChange * *best) {
    return *before;
  }
  return static_cast<std::size_t>(best - seconds.begin());
}

std::vector<TuningEntry> tuning_entries(
    Collective op, const std::vector<std::pair<std::int64_t, Backend>>& fastest) {
  std::vector<TuningEntry> entries;
  for (const auto& [bytes, backend] : fastest) {
    if (!entries.empty() && entries.back().backend == backend) {
      entries.back().max_bytes = bytes;
    } else {
      entries.push_back({std::string(name_of(op)), bytes, backend});
    }
  }
  if (!entries.empty()) {
    entries.back().max_bytes = kMostCount;
  }
  return entries;
}

TuneResult bench_tune(const BenchCollOptions& options, MpiSession& session) {
  if (session.world().size() < 2) {
    throw ConfigError(
        "--write-tuning compares backends among ranks: start at least two with mpirun or srun");
  }
  (void)bench_sizes(options);
  return TuneBench(options, session).run();
}

}  // namespace trireme
