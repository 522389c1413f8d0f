// `trireme bench loader`: the bytes a second that the loader brings to the training loop, shuffled
// and with a warm cache, against bare preads of the same ranges in the same order, in alternating
// rounds of one run. Digests are checked in a round before those that count: that is once a run.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct BenchLoaderOptions {
  std::string data;  // a dataset; empty: random bytes, packed under the temporary folder
  std::int64_t synthetic_bytes = std::int64_t{256} << 20;
  std::int64_t sequence = 1024;
  std::int64_t micro_batch = 8;        // samples
  std::int64_t max_samples = 1 << 18;  // a round; at most an epoch
  std::string shuffle = "block";
  int threads = 1;  // of the loader
  int rounds = 9;
};

struct BenchLoaderResult {
  std::int64_t bytes = 0;  // a round
  std::int64_t reads = 0;
  double bytes_per_s = 0;  // medians over the rounds
  double pread_bytes_per_s = 0;
  double wait_fraction = 0;  // of the loader's time, spent in next()
};

BenchLoaderResult bench_loader(const BenchLoaderOptions& options);

// One entry of results: {name, params, metrics {bytes_per_s, pread_bytes_per_s,
// fraction_of_ceiling}}.
nlohmann::ordered_json bench_loader_json(const BenchLoaderOptions& options,
                                         const BenchLoaderResult& result);

}  // namespace trireme
