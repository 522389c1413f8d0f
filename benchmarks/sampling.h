// Decides how many samples a benchmark takes, and describes samples in the JSON document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/communicator.h"
#include "src/base/stopwatch.h"

namespace trireme {

// StopRule says when there are enough samples. With a precision, sampling stops once the half-width
// of the median's 95 % confidence interval is at most this fraction of the median, with a duration
// after `seconds`, and in any case after `most` samples.
struct StopRule {
  std::int64_t least = 1;
  std::int64_t most = 1;
  double seconds = 0;    // 0: no limit
  double precision = 0;  // 0: no limit

  // Returns "7 rounds" or "rounds for 5 s", for the progress of a benchmark.
  std::string rounds() const;
  // Takes exactly `count` samples, or as many as take `duration` seconds if that is above 0.
  static StopRule count_or_duration(std::int64_t count, double duration);
};

// Sampling answers whether another sample is needed. All ranks of the group get the same answer.
class Sampling {
 public:
  // comm: the ranks that take samples together; null for one process. It outlives this object.
  explicit Sampling(const StopRule& rule, Communicator* comm = nullptr)
      : rule_(rule), comm_(comm) {}
  // samples: all samples so far, the same on all ranks if the rule has a precision. Collective.
  bool more(const std::vector<double>& samples);
  bool more(std::size_t samples);

 private:
  bool out_of_time() const;

  StopRule rule_;
  Communicator* comm_;
  Stopwatch watch_;
};

// HowMeasured describes the samples of one result.
struct HowMeasured {
  std::int64_t warmup = 0;  // samples or calls before the first sample, which are not kept
  StopRule stop;
  std::string sample;           // what one sample is: "one round of all steps, per step"
  std::string synchronized_by;  // how ranks were synchronized before a sample
};
// Returns {warmup, stop {rule, least, most, seconds, precision}, sample, synchronized_by}.
nlohmann::ordered_json to_json(const HowMeasured& how);

inline const char* const kOneProcess = "nothing, there is one process";

// Returns the values of all ranks, in rank order. Each rank passes equally many. Collective.
std::vector<std::vector<double>> gather_by_rank(Communicator& comm,
                                                const std::vector<double>& values);
// Returns the largest, or the sum, of all ranks' values of each sample.
std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank);
std::vector<double> sums(const std::vector<std::vector<double>>& by_rank);

// Returns {values, median, low, high, by_rank}: the values that count, one per sample, with their
// median and its 95 % confidence interval, and what each rank measured. by_rank is null if it is
// empty, which means that one rank alone took the time. Numbers are rounded to nine digits. values:
// at least one.
nlohmann::ordered_json samples_json(const std::vector<double>& values,
                                    const std::vector<std::vector<double>>& by_rank);
// Does the same for one process.
nlohmann::ordered_json samples_json(const std::vector<double>& values);

// Returns the values times a factor.
std::vector<double> multiplied(std::vector<double> values, double factor);
std::vector<std::vector<double>> multiplied(std::vector<std::vector<double>> values, double factor);

}  // namespace trireme
