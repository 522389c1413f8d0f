#include "benchmarks/table_time.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "benchmarks/sampling.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

constexpr double kLeastSeconds = 1e-3;  // for samples; 0 would stand for no limit

}  // namespace

AgreedClock agreed_clock(Communicator& comm) {
  return [watch = Stopwatch(), &comm] {
    return all_reduce_value(comm, watch.seconds(), ReduceOp::max);
  };
}

TableTime::TableTime(double seconds, std::int64_t rows, AgreedClock clock)
    : seconds_(seconds), rows_(rows), clock_(std::move(clock)) {
  start_ = seconds_ > 0 ? clock_() : 0;
}

bool TableTime::begins(const std::string& name, double work) {
  if (seconds_ <= 0) {
    return true;
  }
  begun_ = clock_();
  const double rest = seconds_ - (begun_ - start_);
  const double growth = work_ > 0 ? std::max(work / work_, 1.0) : 1;
  const auto rows = static_cast<double>(std::max<std::int64_t>(rows_--, 1));
  if (least_ > 0 && growth * least_ > rest) {
    left_out_.push_back(name);
    return false;
  }
  share_ = std::max(rest, 0.0) / rows;
  work_ = work;
  return true;
}

double TableTime::left() const {
  return seconds_ > 0 ? std::max(share_ - (clock_() - begun_), kLeastSeconds) : 0;
}

void TableTime::ends(double spare) {
  if (seconds_ > 0) {
    least_ = std::max(clock_() - begun_ - spare, kLeastSeconds);
  }
}

std::string TableTime::text() const {
  return left_out_.empty() ? ""
                           : fmt::format("# left out, as --duration was too short: {}\n",
                                         fmt::join(left_out_, ", "));
}

double table_seconds(double duration, double elapsed, std::int64_t tables) {
  return duration > 0 ? std::max((duration - elapsed) / static_cast<double>(tables), kLeastSeconds)
                      : 0;
}

double spare_seconds(const std::vector<double>& samples, double factor) {
  const auto count = static_cast<double>(samples.size());
  const auto fewest = static_cast<double>(StopRule::count_or_duration(1, 1).least);
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return count > fewest ? factor * sum * (1 - fewest / count) : 0;
}

}  // namespace trireme
