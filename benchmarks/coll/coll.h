// `trireme bench coll` measures the speed of collective operations on a backend and verifies their
// results. It prints the table of nccl-tests or OSU's. With --peer mpi, MPI's own operations are
// measured in turns on the same buffers. On GPUs, operations are queued one after the other. Times
// are medians over the samples; a sample is the time
// of the slowest rank (turns.h).
#pragma once

#include <nlohmann/json.hpp>

#include "benchmarks/coll/collective.h"
#include "benchmarks/measured_rows.h"
#include "benchmarks/turns.h"
#include "mpi/session/mpi_session.h"
#include "src/device/device.h"

namespace trireme {

struct BenchCollOptions {
  Device device = Device::cpu();  // of this rank; CUDA devices exchange tensors over NCCL
  SumOrder sum_order = SumOrder::tree;
  std::vector<Collective> ops = {Collective::all_reduce};
  Backend backend = Backend::automatic;
  std::int64_t min_bytes = std::int64_t{32} << 20;
  std::int64_t max_bytes = std::int64_t{32} << 20;
  std::int64_t increment = std::int64_t{1} << 20;  // bytes, used if factor is 1
  std::int64_t factor = 1;
  TurnOptions turns;
  // Seconds for all operations and sizes together, warm-up and checks included; 0 for as many
  // samples of each as `turns` says.
  double duration = 0;
  int checks = 1;
  DType dtype = DType::f32;
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
  bool ordinary_memory = false;  // whether to use plain buffers instead of the backend's own
  bool peer_mpi = false;
  bool osu_table = false;        // whether to print OSU's table instead of that of nccl-tests
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

struct BenchCollResult {
  nlohmann::ordered_json results;     // entries {name, params, metrics, measurement, samples}
  std::int64_t wrong = 0;             // wrong elements, over all ranks and sizes
  std::vector<std::string> left_out;  // operations and sizes without time or memory
};

// Prints the tables on rank 0. Collective.
BenchCollResult bench_coll(const BenchCollOptions& options, MpiSession& session);

// Returns the sizes from min_bytes to max_bytes. Throws ConfigError for steps that never get there.
std::vector<std::int64_t> bench_sizes(const BenchCollOptions& options);
// Returns those of them that are measured for an operation of so many ranks: one of each group that
// cut_size() makes equal. A barrier has the size 0 only.
std::vector<std::int64_t> distinct_sizes(Collective op, const BenchCollOptions& options, int ranks);

}  // namespace trireme
