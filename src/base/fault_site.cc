#include "src/base/fault_site.h"

#include <algorithm>
#include <array>

namespace trireme {

const FaultSite* find_fault_site(std::span<const FaultSite> sites, std::string_view name) {
  const auto found = std::find_if(sites.begin(), sites.end(),
                                  [name](const FaultSite& site) { return site.name == name; });
  return found == sites.end() ? nullptr : &*found;
}

std::string_view name_of(FaultSite::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"point", "data", "numbers", "call"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace trireme
