#include "mpi/agreement.h"

#include <algorithm>
#include <filesystem>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

[[noreturn]] void throw_as(ExitCode code, const std::string& what) {
  switch (code) {
    case ExitCode::usage:
      throw ConfigError(what);
    case ExitCode::bad_data:
      throw DataError(what);
    case ExitCode::not_found:
      throw NotFound(what);
    case ExitCode::refused:
      throw PolicyError(what);
    default:
      throw IoError(what);
  }
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
      code = static_cast<std::int64_t>(e.exit_code());
    } catch (const std::filesystem::filesystem_error& e) {
      try {
        throw_as_error(e);
      } catch (const Error& known) {
        text = known.what();
        code = static_cast<std::int64_t>(known.exit_code());
      }
    }
  }
  // Only rank 0 can have a code other than 0, and codes are not negative, so max delivers rank 0's.
  code = all_reduce_value(comm, code, ReduceOp::max);
  text = broadcast_text(comm, text, 0);
  if (code != 0) {
    throw_as(static_cast<ExitCode>(code), text);
  }
  return text;
}

std::string gather_faults(Communicator& comm, const std::string& fault) {
  const std::int64_t any = fault.empty() ? 0 : 1;
  if (all_reduce_value(comm, any, ReduceOp::max) == 0) {
    return "";
  }
  const std::vector<std::string> texts = all_gather_text(comm, fault);
  std::string joined;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].empty()) {
      joined += fmt::format("{}rank {} ({}): {}", joined.empty() ? "" : "; ", rank,
                            comm.host(static_cast<int>(rank)), texts[rank]);
    }
  }
  return joined;
}

}  // namespace trireme
