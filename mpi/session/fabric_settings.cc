#include "mpi/session/fabric_settings.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <net/if.h>

#include "mpi/ucx/ucx_transport.h"
#include "src/base/error.h"

namespace trireme {
namespace {

std::vector<std::string> interfaces() {
  std::vector<std::string> names;
  if (auto* const all = ::if_nameindex(); all != nullptr) {
    for (auto* each = all; each->if_index != 0; ++each) {
      names.emplace_back(each->if_name);
    }
    ::if_freenameindex(all);
  }
  return names;
}

// Networks ("10.0.0.0/8") are left to MPI.
bool names_absent_interfaces(const std::string& setting, const std::vector<std::string>& here) {
  std::istringstream words(setting);
  bool named = false;
  for (std::string word; std::getline(words, word, ',');) {
    if (word.find('/') != std::string::npos ||
        std::find(here.begin(), here.end(), word) != here.end()) {
      return false;
    }
    named = named || !word.empty();
  }
  return named;
}

}  // namespace

void check_fabric_settings(const EnvironmentLookup& environment) {
  if (environment("OMPI_MCA_pml") == "ucx") {
    check_ucx_here();
  }
  const std::string setting = environment("OMPI_MCA_btl_tcp_if_include").value_or("");
  const std::vector<std::string> here = interfaces();
  if (!here.empty() && names_absent_interfaces(setting, here)) {
    throw ConfigError(fmt::format(
        "OMPI_MCA_btl_tcp_if_include={} names no interface of this host, which has {}; set it to "
        "the interface that reaches the other hosts or to their network (10.0.0.0/8), or unset it",
        setting, fmt::join(here, ", ")));
  }
}

}  // namespace trireme
