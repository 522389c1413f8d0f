#include <algorithm>

#include <fmt/core.h>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/trace/trace_summary.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".json")) {
      files.push_back(at->path());
    }
  }
  if (error) {
    throw_errno(error.value(), "list", folder);
  }
  std::sort(files.begin(), files.end());
  return files;
}

RankTrace read_trace(const fs::path& file, const TextReader& reader) {
  try {
    return parse_trace(reader.read(file, kMostBytes));
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
}

void check_same_trace(const TraceHeader& first, const TraceHeader& h, const fs::path& file) {
  if (h.id != first.id || h.ranks != first.ranks || !(h.grid == first.grid)) {
    throw DataError(
        fmt::format("{} belongs to a different trace than the first file in the folder: trace "
                    "again, or remove the files of the other trace",
                    file.string()));
  }
}

}  // namespace

fs::path trace_file(const fs::path& folder, int rank) {
  return folder / fmt::format("rank-{:05}.json", rank);
}

std::vector<RankTrace> read_traces(const fs::path& folder, const TextReader& reader) {
  const fs::path inner = folder / "trace";
  const fs::path& from = fs::is_directory(inner) ? inner : folder;
  std::vector<RankTrace> traces;
  for (const fs::path& file : files_in(from)) {
    traces.push_back(read_trace(file, reader));
    check_same_trace(traces.front().header, traces.back().header, file);
  }
  if (traces.empty()) {
    throw NotFound(
        fmt::format("{} contains no trace (rank-00000.json): make one by training with run.trace=N",
                    from.string()));
  }
  std::sort(traces.begin(), traces.end(),
            [](const RankTrace& a, const RankTrace& b) { return a.header.rank < b.header.rank; });
  const int ranks = traces.front().header.ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (at >= traces.size() || traces[at].header.rank != rank) {
      throw DataError(fmt::format("{}: the trace of rank {} of {} is missing or present twice",
                                  from.string(), rank, ranks));
    }
  }
  if (traces.size() > static_cast<std::size_t>(ranks)) {
    throw DataError(fmt::format("{}: there are more trace files than ranks", from.string()));
  }
  return traces;
}

}  // namespace trireme
