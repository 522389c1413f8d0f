#include "benchmarks/coll/collective.h"

#include <array>

#include <fmt/ranges.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"all_reduce", "reduce_scatter", "all_gather",
                                                    "broadcast",  "all_to_all",     "barrier"};
constexpr std::array<std::string_view, 6> kMpiNames = {"MPI_Allreduce", "MPI_Reduce_scatter_block",
                                                       "MPI_Allgather", "MPI_Bcast",
                                                       "MPI_Alltoallv", "MPI_Barrier"};
constexpr std::array<std::string_view, 6> kOsuNames = {
    "Allreduce", "Reduce_scatter", "Allgather", "Broadcast", "All-to-All Personalized Exchange",
    "Barrier"};
constexpr std::array<std::string_view, 3> kReductions = {"sum", "max", "min"};

struct TypeName {
  std::string_view name;
  DType dtype;
};
// The first name of each type is that of nccl-tests.
constexpr std::array<TypeName, 11> kTypes = {{{"float", DType::f32},
                                              {"double", DType::f64},
                                              {"bfloat16", DType::bf16},
                                              {"int32", DType::i32},
                                              {"int64", DType::i64},
                                              {"int", DType::i32},
                                              {"f32", DType::f32},
                                              {"f64", DType::f64},
                                              {"bf16", DType::bf16},
                                              {"i32", DType::i32},
                                              {"i64", DType::i64}}};

template <std::size_t N>
std::size_t find_name(const std::array<std::string_view, N>& names, std::string_view name,
                      const char* what) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      return i;
    }
  }
  throw ConfigError(
      fmt::format("unknown {} '{}': choose from {}", what, name, fmt::join(names, ", ")));
}

}  // namespace

std::string_view name_of(Collective op) { return kNames.at(static_cast<std::size_t>(op)); }

std::vector<std::string> collective_names() { return {kNames.begin(), kNames.end()}; }

Collective parse_collective(std::string_view name) {
  return static_cast<Collective>(find_name(kNames, name, "collective operation"));
}

std::string nccl_test_of(Collective op) {
  return op == Collective::all_to_all ? "alltoall_perf" : fmt::format("{}_perf", name_of(op));
}

std::string osu_test_of(Collective op) {
  return fmt::format("{} Latency", kOsuNames.at(static_cast<std::size_t>(op)));
}

std::string_view mpi_type_name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "MPI_FLOAT";
    case DType::f64:
      return "MPI_DOUBLE";
    case DType::i32:
      return "MPI_INT32_T";
    case DType::i64:
      return "MPI_INT64_T";
    default:
      return "bfloat16";
  }
}

std::string_view mpi_name_of(Collective op) { return kMpiNames.at(static_cast<std::size_t>(op)); }

bool reduces(Collective op) {
  return op == Collective::all_reduce || op == Collective::reduce_scatter;
}

bool has_root(Collective op) { return op == Collective::broadcast; }

DType parse_bench_dtype(std::string_view name) {
  for (const TypeName& type : kTypes) {
    if (type.name == name) {
      return type.dtype;
    }
  }
  throw ConfigError(fmt::format(
      "unknown type '{}': choose float, double, bfloat16, int32 or int64 (or f32, f64, bf16, "
      "i32, i64)",
      name));
}

std::string_view nccl_name_of(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) {
      return type.name;
    }
  }
  throw InternalError("a type that no benchmark takes");
}

ReduceOp parse_reduce_op(std::string_view name) {
  return static_cast<ReduceOp>(find_name(kReductions, name, "reduction"));
}

std::string_view reduction_name(ReduceOp op) {
  return kReductions.at(static_cast<std::size_t>(op));
}

CollectiveSize cut_size(Collective op, std::int64_t bytes, DType dtype, int ranks) {
  if (op == Collective::barrier) {
    return {};
  }
  const std::int64_t size = size_of(dtype);
  const std::int64_t whole = bytes / size;
  if (op == Collective::all_reduce || op == Collective::broadcast) {
    return {whole * size, whole, whole};
  }
  const std::int64_t unit = 16 / size;
  const std::int64_t block = whole / ranks / unit * unit;
  return {block * ranks * size, block, block * ranks};
}

double bus_factor(Collective op, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (op) {
    case Collective::all_reduce:
      return 2 * share;
    case Collective::broadcast:
    case Collective::barrier:
      return 1;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return share;
  }
  throw InternalError("no such operation");
}

}  // namespace trireme
