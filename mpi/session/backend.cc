#include "mpi/session/backend.h"

#include <array>

#include <fmt/ranges.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"auto", "mpi", "shm", "ucx", "hierarchical"};

}  // namespace

std::string_view name_of(Backend backend) { return kNames.at(static_cast<std::size_t>(backend)); }

std::vector<std::string> backend_names() { return {kNames.begin(), kNames.end()}; }

Backend parse_backend(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<Backend>(i);
    }
  }
  throw ConfigError(
      fmt::format("unknown backend '{}': choose one of {}", name, fmt::join(kNames, ", ")));
}

}  // namespace trireme
