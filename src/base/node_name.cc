#include "src/base/node_name.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "src/base/log.h"

namespace trireme {

std::string node_name() {
  constexpr std::size_t kLongestName = 255;
  const char* const given = std::getenv("SLURMD_NODENAME");
  const std::string_view name = given == nullptr ? "" : given;
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  const bool is_name = !name.empty() && name.size() <= kLongestName && name.front() != '-' &&
                       std::all_of(name.begin(), name.end(), is_plain);
  return is_name ? std::string(name) : host_name();
}

}  // namespace trireme
