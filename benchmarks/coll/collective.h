// Names the collective operations that `trireme bench coll` measures, and counts their bytes by the
// rules of nccl-tests. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, barrier };

std::string_view name_of(Collective op);
std::vector<std::string> collective_names();
// Throws ConfigError for a name that is not in collective_names().
Collective parse_collective(std::string_view name);
// Returns the program of nccl-tests for the operation, such as "all_reduce_perf".
std::string nccl_test_of(Collective op);
// Returns the name in the title of OSU's benchmark, such as "Allreduce Latency".
std::string osu_test_of(Collective op);
// Returns the name in MPI, such as "MPI_Allreduce".
std::string_view mpi_name_of(Collective op);
bool reduces(Collective op);
bool has_root(Collective op);

// Types and reductions have the names of nccl-tests ("float", "sum") and also our own ("f32").
DType parse_bench_dtype(std::string_view name);
std::string_view nccl_name_of(DType dtype);
// Returns MPI's name of the type, such as "MPI_FLOAT". MPI has none for bfloat16.
std::string_view mpi_type_name_of(DType dtype);
ReduceOp parse_reduce_op(std::string_view name);
std::string_view reduction_name(ReduceOp op);

// CollectiveSize is the size of one operation in a given world.
struct CollectiveSize {
  std::int64_t bytes = 0;     // of the whole array: the "size" column
  std::int64_t count = 0;     // elements passed to a call: the "count" column
  std::int64_t elements = 0;  // elements of the whole array
};

// Divides the array as nccl-tests does: if each rank has a part of its own, the parts are equal
// multiples of 16 bytes, so that sizes below 16 bytes per rank become 0.
CollectiveSize cut_size(Collective op, std::int64_t bytes, DType dtype, int ranks);

// Returns busbw / algbw: the bytes that a ring has to move over each link, relative to the array
// (nccl-tests, doc/PERFORMANCE.md). It is 2(n-1)/n, (n-1)/n or 1.
double bus_factor(Collective op, int ranks);

}  // namespace trireme
