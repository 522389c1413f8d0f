// `trireme bench p2p` measures latency and bandwidth between two ranks, with the output of OSU's
// osu_latency and osu_bw. The data is verified once per size. With --peer mpi, the same messages
// are also sent with MPI's own calls, which is what OSU's programs measure. Between GPUs, the host
// waits for each message, or for each window of them.
#pragma once

#include <nlohmann/json.hpp>

#include "benchmarks/measured_rows.h"
#include "src/app/command/app_context.h"
#include "src/device/device.h"

namespace trireme {

struct BenchP2pOptions {
  Device device = Device::cpu();  // of this rank; CUDA devices send over NCCL
  Backend backend = Backend::automatic;
  int first = 0;  // the two ranks that are measured
  int second = 1;
  bool latency = true;
  bool bandwidth = true;
  std::int64_t min_bytes = 1;
  std::int64_t max_bytes = std::int64_t{4} << 20;
  int iterations = 0;  // 0 for OSU's: 10000 and 1000 (latency), 100 and 20 (bandwidth) above 8 KiB
  int warmup = -1;     // -1 for OSU's: 100 and 10, 10 and 2
  // Seconds for all sizes and tests together, warm-up included; 0 for `iterations` of each.
  double duration = 0;
  int window = 64;  // messages in flight at once, for bandwidth
  bool check = true;
  bool peer_mpi = false;         // whether MPI's own calls are measured as well, after each size
  bool show_check = false;       // whether the tables have OSU's column of verdicts
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

struct BenchP2pResult {
  nlohmann::ordered_json results;     // entries {name: p2p_latency or p2p_bw, params, metrics}
  std::int64_t wrong = 0;             // wrong bytes
  std::vector<std::string> left_out;  // sizes without time or memory
};

// Prints the tables on rank 0. Collective: the other ranks wait.
BenchP2pResult bench_p2p(const BenchP2pOptions& options, MpiSession& session);

}  // namespace trireme
