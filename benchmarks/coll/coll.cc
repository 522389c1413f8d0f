#include "benchmarks/coll/coll.h"

#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/coll/coll_check.h"
#include "benchmarks/coll/coll_entry.h"
#include "benchmarks/coll/contestant.h"
#include "benchmarks/coll/nccl_table.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/memory_rate.h"
#include "benchmarks/osu_table.h"
#include "benchmarks/progress.h"
#include "benchmarks/table_buffers.h"
#include "benchmarks/table_time.h"
#include "src/app/command/version.h"
#include "src/base/units.h"
#include "src/compute/device_choice.h"
#include "src/compute/device_context.h"

namespace trireme {
namespace {

constexpr std::size_t kMostSizes = 10'000;
// Smaller arrays fit into caches, so the rate of the memory does not limit them.
constexpr std::int64_t kMemoryBoundBytes = std::int64_t{1} << 20;

constexpr double kWarmupPart = 0.25;  // of a row's time, at most, with --duration
// Operations on arrays of up to about this size take equally long.
constexpr double kLatencyBound = 65536;

// What the lines below a table say.
struct CollTotals {
  double busbw = 0;  // sum over the rows
  int rows = 0;
  std::int64_t errors = 0;  // placements with wrong elements
  std::string peer_lines;
};

class CollBench {
 public:
  CollBench(const BenchCollOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        group_(session, options.backend, options.device),
        context_(options.device, 1,
                 options.ordinary_memory ? memory_of(options.device) : comm().memory()),
        buffers_(control(), {.device = options.device,
                             .local_ranks = session.place().local_size,
                             .clear = [this](const View& view) { clear(view); }}),
        progress_("bench coll", rows(), comm().rank() == 0) {
    comm().set_sum_order(options.sum_order);
    buffers_.add(context_.exchange().source());
    if (options.peer_mpi) {
      mpi_.emplace(session);
    }
    if (options.root >= comm().size()) {
      throw ConfigError(
          fmt::format("-r {}: the ranks are 0 to {}", options.root, comm().size() - 1));
    }
  }

  BenchCollResult run() {
    BenchCollResult result{nlohmann::ordered_json::array(), 0, {}};
    const AgreedClock clock = agreed_clock(control());
    std::int64_t left = std::ssize(options_.ops);
    for (const Collective op : options_.ops) {
      run_one(op, table_seconds(options_.duration, clock(), left--), result);
    }
    return result;
  }

 private:
  Communicator& comm() const { return group_.data(); }
  Communicator& control() const { return group_.control(); }
  bool on_gpu() const { return options_.device.kind == DeviceKind::cuda; }
  void clear(const View& view) {
    context_.stream().clear(view);
    context_.stream().synchronize();
  }
  std::int64_t rows() const {
    std::size_t rows = 0;
    for (const Collective op : options_.ops) {
      rows += distinct_sizes(op, options_, comm().size()).size();
    }
    return static_cast<std::int64_t>(rows);
  }

  void run_one(Collective op, double seconds, BenchCollResult& result);
  std::string header(Collective op);
  std::string osu_header(Collective op) const;
  std::string osu_line(const CollMeasurement& measurement) const;
  CollMeasurement measure(const CollectiveTask& task, std::int64_t bytes, TableTime& limit);
  void report(const CollMeasurement& measurement, CollTotals& totals, BenchCollResult& result);
  void check(CollMeasurement& measurement, Contestant& ours);
  std::int64_t count_wrong(const CollCheck& checker, const View& data);
  double memory_rate();
  void time(CollMeasurement& measurement, Contestant& ours, const TableTime& limit);
  // Calls set(view), which sets the elements of `data`, or of a copy of it on the host.
  template <class Set>
  void on_host(const View& data, Set set) {
    if (data.count == 0) {
      return;
    }
    if (!on_gpu()) {
      set(data);
      return;
    }
    const Buffer copy = context_.staging().allocate(data.bytes());
    const View host = copy.view(data.dtype).slice(0, data.count);
    set(host);
    context_.stream().copy(data, host);
    context_.stream().synchronize();
  }
  NcclCell cell(const CollMeasurement& measurement, bool in_place) const;

  BenchCollOptions options_;
  MpiSession& session_;
  MeasuredGroup group_;
  DeviceContext context_;
  TableBuffers buffers_;
  std::optional<MpiNative> mpi_;
  std::optional<MemoryRate> memory_;
  std::optional<double> last_memory_rate_;
  TableProgress progress_;
};

std::string CollBench::header(Collective op) {
  const RankPlace& place = session_.place();
  const std::string line =
      nccl_device_line(place.rank, ::getpid(), place.node, place.local_rank,
                       on_gpu() ? device_text(options_.device) : "cpus " + place.binding.cpus);
  const auto version = version_json();
  NcclHeader header{
      .program = fmt::format("trireme {} backend={} memory={} mpi={}",
                             version.at("version").get<std::string>(), backend_text(options_),
                             options_.ordinary_memory ? "ordinary" : "transport",
                             session_.library_version()),
      .test = nccl_test_of(op),
      .min_bytes = options_.min_bytes,
      .max_bytes = options_.max_bytes,
      .step = options_.factor > 1 ? options_.factor : options_.increment,
      .step_is_factor = options_.factor > 1,
      .warmup = options_.turns.warmup,
      .iterations = options_.turns.iterations,
      .aggregated = options_.turns.aggregated,
      .checks = options_.checks,
      .devices = all_gather_text(control(), line)};
  return nccl_header(header);
}

std::string CollBench::osu_header(Collective op) const {
  return fmt::format("# Trireme {} of {}, backend {}\n", name_of(op),
                     counted(comm().size(), "rank"), backend_text(options_)) +
         osu_title(osu_test_of(op), mpi_type_name_of(options_.dtype)) +
         osu_columns("Avg Latency(us)", op != Collective::barrier,
                     options_.checks > 0 && op != Collective::barrier);
}

// OSU's programs work out of place where MPI allows that, take the mean over the calls and over the
// ranks, and give the size of a rank's block for all-gather and all-to-all.
std::string CollBench::osu_line(const CollMeasurement& measurement) const {
  const Collective op = measurement.task.op;
  const std::size_t place = op == Collective::broadcast ? 1 : 0;
  double sum = 0;
  double count = 0;
  for (const std::vector<double>& own : measurement.ours[place].by_rank) {
    sum = std::accumulate(own.begin(), own.end(), sum);
    count += static_cast<double>(own.size());
  }
  if (op == Collective::barrier) {
    return osu_row({}, 1e6 * sum / count, {});
  }
  const bool of_block = op == Collective::all_gather || op == Collective::all_to_all;
  return osu_row(measurement.size.bytes / (of_block ? measurement.ranks : 1), 1e6 * sum / count,
                 options_.checks > 0 ? std::optional(measurement.wrong[place]) : std::nullopt);
}

void CollBench::check(CollMeasurement& measurement, Contestant& ours) {
  const CollCheck checker(measurement.task, options_.dtype, comm().rank(), comm().size());
  const std::int64_t n = measurement.size.elements;
  const View from = buffers_.first().view(options_.dtype).slice(0, n);
  const View to = buffers_.second().view(options_.dtype).slice(0, n);
  const auto fill_bytes = [](const View& view) {
    std::memset(view.data, 0x5A, static_cast<std::size_t>(view.bytes()));
  };
  for (int round = 0; round < options_.checks; ++round) {
    on_host(from, [&](const View& host) { checker.fill(host); });
    on_host(to, fill_bytes);
    ours.out_of_place(from, to);
    measurement.wrong[0] += count_wrong(checker, to);
    on_host(from, [&](const View& host) { checker.fill(host); });
    ours.in_place(from, to);
    measurement.wrong[1] += count_wrong(checker, from);
  }
}

std::int64_t CollBench::count_wrong(const CollCheck& checker, const View& data) {
  Buffer copy;
  View host = data;
  if (on_gpu()) {
    copy = context_.staging().allocate(data.bytes());
    host = copy.view(data.dtype).slice(0, data.count);
    context_.stream().copy(host, data);
    context_.stream().synchronize();
  }
  return all_reduce_value(control(), checker.count_wrong(host), ReduceOp::sum);
}

void CollBench::time(CollMeasurement& measurement, Contestant& ours, const TableTime& limit) {
  const std::int64_t n = measurement.size.elements;
  const View a = buffers_.first().view(options_.dtype).slice(0, n);
  const View b = buffers_.second().view(options_.dtype).slice(0, n);
  context_.stream().clear(a);
  const bool with_peer =
      mpi_ && (!reduces(measurement.task.op) || MpiNative::can_reduce(options_.dtype));
  std::unique_ptr<Contestant> peer;
  std::vector<std::function<void()>> ways = {[&] { ours.out_of_place(a, b); }};
  if (with_peer) {
    peer = make_contestant(*mpi_, measurement.task, comm().rank(), comm().size());
    ways.emplace_back([&] { peer->out_of_place(a, b); });
  }
  ways.emplace_back([&] { ours.in_place(a, b); });
  if (with_peer) {
    ways.emplace_back([&] { peer->in_place(a, b); });
  }
  TurnOptions settling = options_.turns;
  settling.settle = [this] { context_.stream().synchronize(); };
  if (const double left = limit.left(); left > 0) {
    settling.warmup_seconds = kWarmupPart * left / static_cast<double>(ways.size());
    settling.seconds = (1 - kWarmupPart) * left;
  }
  auto samples = take_turns(control(), ways, settling);
  measurement.how = how_turns_measure(settling);
  measurement.how.warmup = samples[0].warmup;
  measurement.ours = {samples[0], samples[with_peer ? 2 : 1]};
  if (with_peer) {
    measurement.peer = {samples[1], samples[3]};
  }
}

// Measured after each size, but once only if the time is limited.
double CollBench::memory_rate() {
  if (!memory_) {
    memory_.emplace();
  }
  if (options_.duration <= 0 || !last_memory_rate_) {
    last_memory_rate_ = memory_->measure(comm());
  }
  return *last_memory_rate_;
}

CollMeasurement CollBench::measure(const CollectiveTask& task, std::int64_t bytes,
                                   TableTime& limit) {
  CollMeasurement measurement;
  measurement.task = task;
  measurement.size = cut_size(task.op, bytes, options_.dtype, comm().size());
  measurement.ranks = comm().size();
  const auto ours = make_contestant(comm(), task, on_gpu() ? &context_.stream() : nullptr);
  check(measurement, *ours);
  time(measurement, *ours, limit);
  const bool within_memory = task.op == Collective::all_reduce && !on_gpu();
  if (within_memory && measurement.size.bytes >= kMemoryBoundBytes) {
    measurement.memory_rate = memory_rate();
  }
  limit.ends(measurement.spare_seconds());
  return measurement;
}

NcclCell CollBench::cell(const CollMeasurement& measurement, bool in_place) const {
  const double seconds = median(measurement.ours[in_place ? 1 : 0].seconds);
  NcclCell cell{seconds * 1e6, measurement.algbw(seconds), measurement.busbw(seconds), {}};
  // nccl-tests has no all-to-all in place and prints no count of wrong elements there.
  const bool counted = measurement.task.op != Collective::barrier &&
                       !(in_place && measurement.task.op == Collective::all_to_all);
  if (options_.checks > 0 && counted) {
    cell.wrong = measurement.wrong[in_place ? 1 : 0];
  }
  return cell;
}

// Prints the row and adds it to the totals.
void CollBench::report(const CollMeasurement& measurement, CollTotals& totals,
                       BenchCollResult& result) {
  const Collective op = measurement.task.op;
  const NcclCell out_of_place = cell(measurement, false);
  const NcclCell in_place = cell(measurement, true);
  progress_.print(
      options_.osu_table
          ? osu_line(measurement)
          : nccl_row_start({measurement.size, std::string(nccl_name_of(options_.dtype)),
                            reduces(op) ? std::string(reduction_name(options_.reduction)) : "none",
                            has_root(op) ? options_.root : -1}) +
                nccl_cell(out_of_place) + nccl_cell(in_place) + "\n");
  totals.busbw += (out_of_place.busbw + in_place.busbw) / 2;
  ++totals.rows;
  for (const std::int64_t wrong : measurement.wrong) {
    totals.errors += wrong > 0 ? 1 : 0;
    result.wrong += wrong;
  }
  totals.peer_lines += peer_line(measurement);
  add_row(result.results, coll_entry(measurement, options_, session_), options_.rows);
}

void CollBench::run_one(Collective op, double seconds, BenchCollResult& result) {
  const CollectiveTask task{op, options_.reduction, options_.root};
  const std::vector<std::int64_t> sizes = distinct_sizes(op, options_, comm().size());
  TableTime limit(seconds, std::ssize(sizes), agreed_clock(control()));
  progress_.print(options_.osu_table ? osu_header(op) : header(op));
  CollTotals totals;
  for (const std::int64_t bytes : sizes) {
    const std::string name = fmt::format("{}, {}", name_of(op), format_bytes(bytes));
    progress_.measuring(name);
    if (limit.begins(format_bytes(bytes), kLatencyBound + static_cast<double>(bytes)) &&
        buffers_.holds(format_bytes(bytes), bytes)) {
      report(measure(task, bytes, limit), totals, result);
    } else {
      result.left_out.push_back(name);
    }
    progress_.done();
  }
  if (!options_.osu_table) {
    progress_.print(nccl_footer(totals.errors, totals.busbw / totals.rows, nccl_test_of(op)));
  }
  progress_.print(limit.text() + buffers_.text());
  if (!totals.peer_lines.empty()) {
    progress_.print(peer_header(op) + totals.peer_lines);
  }
}

void check_for_device(const BenchCollOptions& options) {
  if (options.device.kind == DeviceKind::cuda && options.peer_mpi) {
    throw ConfigError("--peer mpi measures memory of the host: measure GPUs without it");
  }
}

}  // namespace

std::vector<std::int64_t> bench_sizes(const BenchCollOptions& options) {
  if (options.max_bytes < options.min_bytes) {
    throw ConfigError(fmt::format("-e {} is below -b {}", options.max_bytes, options.min_bytes));
  }
  const bool grows = options.factor > 1 ? options.min_bytes > 0 : options.increment > 0;
  if (!grows && options.min_bytes != options.max_bytes) {
    throw ConfigError("the sizes do not grow: -f needs -b above 0, and -i must be above 0");
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = options.min_bytes; bytes <= options.max_bytes;
       bytes = options.factor > 1 ? bytes * options.factor : bytes + options.increment) {
    sizes.push_back(bytes);
    if (!grows) {
      break;
    }
    if (sizes.size() > kMostSizes) {
      throw ConfigError(
          fmt::format("-b, -e and -i name more than {} sizes: take a larger step", kMostSizes));
    }
  }
  return sizes;
}

std::vector<std::int64_t> distinct_sizes(Collective op, const BenchCollOptions& options,
                                         int ranks) {
  if (op == Collective::barrier) {
    return {0};
  }
  std::vector<std::int64_t> sizes;
  for (const std::int64_t bytes : bench_sizes(options)) {
    const auto cut = [&](std::int64_t size) {
      return cut_size(op, size, options.dtype, ranks).bytes;
    };
    if (sizes.empty() || cut(sizes.back()) != cut(bytes)) {
      sizes.push_back(bytes);
    }
  }
  return sizes;
}

BenchCollResult bench_coll(const BenchCollOptions& options, MpiSession& session) {
  (void)bench_sizes(options);
  check_for_device(options);
  CollBench bench(options, session);
  if (session.world().size() < 2) {
    throw ConfigError(
        "bench coll measures operations between ranks: start it with mpirun -n 2 or srun -n 2");
  }
  return bench.run();
}

}  // namespace trireme
