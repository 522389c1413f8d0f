// `trireme bench loader` measures how many bytes per second the loader delivers to the training
// loop, shuffled and with a warm cache, against plain preads of the same ranges in the same order.
// Both alternate in rounds of one run. Digests are checked in a round that is not timed, because a
// run checks them only once. An encrypted dataset is decrypted and authenticated in each round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct BenchLoaderOptions {
  std::string data;  // a dataset; if empty, one of random bytes is made in the temporary folder
  std::int64_t synthetic_bytes = std::int64_t{256} << 20;
  std::int64_t sequence = 1024;
  std::int64_t micro_batch = 8;        // in samples
  std::int64_t max_samples = 1 << 18;  // per round, at most an epoch
  std::string shuffle = "block";
  bool encrypt = false;  // encrypt that dataset of random bytes
  int threads = 1;       // of the loader
  int rounds = 9;
  double duration = 0;  // seconds of rounds, instead of `rounds` of them
};

struct BenchLoaderResult {
  bool is_encrypted = false;
  std::int64_t bytes = 0;  // per round
  std::int64_t reads = 0;
  std::vector<double> bytes_per_s;  // one value per round, as in the next one
  std::vector<double> pread_bytes_per_s;
  double wait_fraction = 0;  // fraction of the loader's time that was spent in next()
};

BenchLoaderResult bench_loader(const BenchLoaderOptions& options);

// Returns one entry of the results: {name, params, metrics {bytes_per_s, pread_bytes_per_s,
// fraction_of_ceiling}, measurement, samples}.
nlohmann::ordered_json bench_loader_json(const BenchLoaderOptions& options,
                                         const BenchLoaderResult& result);

}  // namespace trireme
