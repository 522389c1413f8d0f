// Measures messages and sums between ranks for a cluster file. All functions are collective, and
// throw DeviceError if data arrived wrong.
#pragma once

#include "mpi/session/mpi_session.h"

namespace trireme {

struct TransferSizes {
  std::int64_t sum_bytes = 0;  // of a large sum
  std::int64_t message_bytes = std::int64_t{1} << 20;
  int window = 64;  // messages in flight at once
};

// How the ranks of a run exchange tensors.
struct Connections {
  MpiSession& session;
  Device device;  // of this rank
  SumOrder sum_order = SumOrder::tree;
  TransferSizes sizes;
};

struct MessageRates {
  double gb_per_s = 0;
  double latency_us = 0;  // of 8 bytes; between GPUs with the wait of the host
};
MessageRates message_rates(const Connections& among, int first, int second, double seconds);

// Returns GB/s of each rank in a ring sum over all ranks.
double sum_rate(const Connections& among, double seconds);

// Returns the microseconds of a step of a sum of 8 bytes over all ranks: its time is that of
// 2 log2(n) steps, as the planner counts them.
double hop_latency(const Connections& among, double seconds);

// Throws DeviceError, which names the benchmark, if there are wrong results.
void demand_correct(std::int64_t wrong, const char* bench);

}  // namespace trireme
