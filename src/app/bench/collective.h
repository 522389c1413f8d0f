// Collective: what `trireme bench coll` can measure, with the counting rules of nccl-tests. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, barrier };

std::string_view name_of(Collective op);
std::vector<std::string> collective_names();
// ConfigError for a name not listed there.
Collective parse_collective(std::string_view name);
// nccl-tests' program for it: "all_reduce_perf".
std::string nccl_test_of(Collective op);
// What MPI calls it: "MPI_Allreduce".
std::string_view mpi_name_of(Collective op);
bool reduces(Collective op);
bool has_root(Collective op);

// nccl-tests' names for types and reductions ("float", "sum") and our own ("f32").
DType parse_bench_dtype(std::string_view name);
std::string_view nccl_name_of(DType dtype);
ReduceOp parse_reduce_op(std::string_view name);
std::string_view reduction_name(ReduceOp op);

// One size of one operation among `ranks` ranks.
struct CollectiveSize {
  std::int64_t bytes = 0;     // of the whole array: the size column
  std::int64_t count = 0;     // elements that a call is given: the count column
  std::int64_t elements = 0;  // of the whole array
};

// As nccl-tests cuts them: where ranks hold blocks, these are equal multiples of 16 bytes, so that
// sizes below 16 bytes a rank become 0.
CollectiveSize cut_size(Collective op, std::int64_t bytes, DType dtype, int ranks);

// busbw = algbw x this: what a ring would have to move over each link, relative to the array
// (nccl-tests, doc/PERFORMANCE.md): 2(n-1)/n, (n-1)/n or 1.
double bus_factor(Collective op, int ranks);

}  // namespace trireme
