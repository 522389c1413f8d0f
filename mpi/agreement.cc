#include "mpi/agreement.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/out_of_memory.h"

namespace trireme {
namespace {

// An outcome on rank 0, as the number that the other ranks get: an exit code, or kNoMemory.
constexpr std::int64_t kNoMemory = 256;

std::int64_t outcome_of(const Error& error) {
  return dynamic_cast<const ResourceError*>(&error) != nullptr
             ? kNoMemory
             : static_cast<std::int64_t>(error.exit_code());
}

[[noreturn]] void throw_as(std::int64_t outcome, const std::string& what) {
  if (outcome == kNoMemory) {
    throw ResourceError(what);
  }
  switch (static_cast<ExitCode>(outcome)) {
    case ExitCode::usage:
      throw ConfigError(what);
    case ExitCode::bad_data:
      throw DataError(what);
    case ExitCode::not_found:
      throw NotFound(what);
    case ExitCode::refused:
      throw PolicyError(what);
    case ExitCode::device:
      throw DeviceError(what);
    default:
      throw IoError(what);
  }
}

// Returns, for example, "rank 1 (n7), rank 2 (n7)", or the first few of many ranks and "and 60
// more".
std::string names_of(const std::vector<int>& ranks, const Communicator& comm) {
  constexpr std::size_t kMostNamed = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    names += fmt::format("{}rank {} ({})", i == 0 ? "" : ", ", ranks[i], comm.host(ranks[i]));
  }
  return ranks.size() <= kMostNamed
             ? names
             : fmt::format("{} and {} more", names, ranks.size() - kMostNamed);
}

}  // namespace

std::string run_on_root(Communicator& comm, const std::function<std::string()>& work) {
  std::string text;
  std::int64_t code = 0;
  if (comm.rank() == 0) {
    try {
      text = work();
    } catch (const Error& e) {
      text = e.what();
      code = outcome_of(e);
    } catch (const std::filesystem::filesystem_error& e) {
      try {
        throw_as_error(e);
      } catch (const Error& known) {
        text = known.what();
        code = outcome_of(known);
      }
    } catch (const std::bad_alloc&) {
      text = kOutOfMemoryForFiles;
      code = kNoMemory;
    }
  }
  // Only rank 0 can have a code other than 0, and codes are not negative, so max delivers rank 0's.
  code = all_reduce_value(comm, code, ReduceOp::max);
  text = broadcast_text(comm, text, 0);
  if (code != 0) {
    throw_as(code, text);
  }
  return text;
}

std::string gather_faults(Communicator& comm, const std::string& fault) {
  if (comm.size() == 1) {
    return fault;
  }
  const std::int64_t any = fault.empty() ? 0 : 1;
  if (all_reduce_value(comm, any, ReduceOp::max) == 0) {
    return "";
  }
  const std::vector<std::string> texts = all_gather_text(comm, fault);
  // The ranks with each text, in the order of their first ranks.
  std::vector<std::pair<std::string, std::vector<int>>> faults;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    const auto same = std::find_if(faults.begin(), faults.end(),
                                   [&](const auto& known) { return known.first == text; });
    if (same != faults.end()) {
      same->second.push_back(rank);
    } else if (!text.empty()) {
      faults.push_back({text, {rank}});
    }
  }
  std::string joined;
  for (const auto& [text, ranks] : faults) {
    joined += fmt::format("{}{}: {}", joined.empty() ? "" : "; ", names_of(ranks, comm), text);
  }
  return joined;
}

}  // namespace trireme
