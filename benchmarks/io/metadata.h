// Measures the rates of metadata operations as mdtest does: each rank creates files in one folder
// for all ranks or in its own, then finds their sizes, reads and removes them; the same for
// folders. Every operation is checked: sizes, contents, and that nothing is left.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "benchmarks/io/io.h"
#include "benchmarks/progress.h"

namespace trireme {

inline constexpr int kMetadataOperations = 7;

// Returns one entry {name: io_metadata, ...} per operation. shift: how many ranks the one that
// looks at a file is away from its creator. Prints mdtest's table on rank 0. Collective.
nlohmann::ordered_json bench_metadata(const BenchIoOptions& options,
                                      const std::filesystem::path& folder, int shift,
                                      const nlohmann::ordered_json& common, MpiSession& session,
                                      TableProgress& progress);

// Formats mdtest's summary: rates in operations per second, one list per operation.
std::string mdtest_summary(const std::vector<std::pair<std::string, std::vector<double>>>& rates);

}  // namespace trireme
