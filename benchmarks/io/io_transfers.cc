#include "benchmarks/io/io_transfers.h"

#include <algorithm>

#include "benchmarks/sampling.h"
#include "io/checkpoint/names.h"

namespace trireme {
namespace {

constexpr std::int64_t kPage = 4096;

// Combines the spans of all ranks into what IOR reports.
struct IoSpans {
  IoSpan open;
  IoSpan transfer;
  IoSpan close;
};

}  // namespace

IoTransfers::IoTransfers(const BenchIoOptions& options, MpiSession& session)
    : options_(options),
      session_(session),
      pattern_(options.layout.transfer_bytes, options.layout.seed),
      engine_(make_io_engine(options.api, options.depth)),
      memory_(engine_->depth() * round_up(options.layout.transfer_bytes, kPage)),
      written_(static_cast<std::size_t>(options.layout.ranks), 0) {}

char* IoTransfers::buffer(int slot) const {
  return reinterpret_cast<char*>(memory_.data()) +
         slot * round_up(options_.layout.transfer_bytes, kPage);
}

std::int64_t IoTransfers::transfer_all(bool writes, int whose, std::int64_t most,
                                       std::int64_t& wrong) {
  const std::int64_t bytes = options_.layout.transfer_bytes;
  std::vector<std::int64_t> places(static_cast<std::size_t>(engine_->depth()));
  std::vector<int> idle;
  for (int slot = engine_->depth(); slot-- > 0;) {
    idle.push_back(slot);
  }
  const Stopwatch watch;
  std::int64_t made = 0;
  std::int64_t in_flight = 0;
  bool stopped = false;
  while (in_flight > 0 || (made < most && !stopped)) {
    if (!idle.empty() && made < most && !stopped) {
      const int slot = idle.back();
      idle.pop_back();
      const std::int64_t offset = options_.layout.offset(whose, made++);
      places[static_cast<std::size_t>(slot)] = offset;
      if (writes) {
        pattern_.stamp(buffer(slot), offset, whose);
      }
      engine_->submit(slot, {offset, buffer(slot), bytes});
      ++in_flight;
      stopped = options_.stonewall > 0 && watch.seconds() > options_.stonewall;
      if (!idle.empty()) {
        continue;
      }
    }
    const int slot = engine_->complete();
    --in_flight;
    idle.push_back(slot);
    if (!writes &&
        !pattern_.has_place(buffer(slot), places[static_cast<std::size_t>(slot)], whose)) {
      wrong += std::min<std::int64_t>(bytes, 16);
    }
  }
  return made;
}

IoPhaseResult IoTransfers::run(bool writes, const std::filesystem::path& path, int whose) {
  Communicator& world = session_.world();
  for (int slot = 0; writes && slot < engine_->depth(); ++slot) {
    pattern_.fill(buffer(slot));
  }
  IoPhaseResult result;
  IoSpans spans;
  std::int64_t wrong = 0;
  const IoClock clock(session_);
  spans.open.begin = clock.seconds();
  engine_->open(
      {path.string(), writes, options_.cache == IoCache::bypass, options_.layout.file_bytes()});
  spans.open.end = spans.transfer.begin = clock.seconds();
  const std::int64_t most =
      writes ? options_.layout.transfers_per_rank() : written_[static_cast<std::size_t>(whose)];
  const std::int64_t made = transfer_all(writes, whose, most, wrong);
  if (writes && options_.fsync) {
    engine_->sync();
  }
  spans.transfer.end = spans.close.begin = clock.seconds();
  engine_->close();
  spans.close.end = clock.seconds();

  const auto count = static_cast<double>(made);
  const double own = (spans.transfer.end - spans.transfer.begin) / std::max(count, 1.0);
  result.all.writes = writes;
  result.all.bytes = all_reduce_value(world, made, ReduceOp::sum) * options_.layout.transfer_bytes;
  result.all.latency = all_reduce_value(world, own, ReduceOp::min);
  result.all.open = duration_of(spans.open, world);
  result.all.transfer = duration_of(spans.transfer, world);
  result.all.close = duration_of(spans.close, world);
  result.all.total = duration_of({spans.open.begin, spans.close.end}, world);
  const auto all = gather_by_rank(world, {spans.close.end - spans.open.begin, count});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    result.by_rank.push_back(all[rank][0]);
    if (writes) {
      written_[rank] = static_cast<std::int64_t>(all[rank][1]);
    }
  }
  result.wrong = all_reduce_value(world, wrong, ReduceOp::sum);
  return result;
}

std::int64_t IoTransfers::count_wrong(const std::filesystem::path& path, int whose) {
  engine_->open(
      {path.string(), false, options_.cache == IoCache::bypass, options_.layout.file_bytes()});
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < written_[static_cast<std::size_t>(whose)]; ++i) {
    const std::int64_t offset = options_.layout.offset(whose, i);
    engine_->submit(0, {offset, buffer(0), options_.layout.transfer_bytes});
    (void)engine_->complete();
    wrong += pattern_.count_wrong(buffer(0), offset, whose);
  }
  engine_->close();
  return all_reduce_value(session_.world(), wrong, ReduceOp::sum);
}

}  // namespace trireme
