#include "slurm/policy/nodes.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMostNameBytes = 253;  // RFC 1035
constexpr int kMostSlots = 1 << 16;

// Parses a line with a name and its options.
NodeSpec parse_line(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  NodeSpec node;
  words >> node.name;
  // ssh takes a number for an address.
  if (!is_host_name(node.name) || node.name.find_first_not_of("0123456789") == node.name.npos) {
    throw ConfigError(fmt::format("{}: the line does not begin with the name of a host", where));
  }
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), node.slots);
    if (key == "group" && is_host_name(value)) {
      node.group = value;
    } else if (key != "slots" || error != std::errc() || end != value.data() + value.size() ||
               node.slots < 1 || node.slots > kMostSlots) {
      throw ConfigError(
          fmt::format("{}: a node's name is followed by slots=NUMBER or group=NAME alone", where));
    }
  }
  return node;
}

}  // namespace

bool is_host_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_';
         });
}

std::vector<NodeSpec> parse_host_file(std::string_view text, const std::string& origin) {
  std::vector<NodeSpec> nodes;
  std::set<std::string> names;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    const std::string where = fmt::format("{}:{}", origin, number);
    nodes.push_back(parse_line(line, where));
    if (!names.insert(nodes.back().name).second) {
      throw ConfigError(fmt::format("{}: host '{}' is listed twice", where, nodes.back().name));
    }
  }
  if (nodes.empty()) {
    throw ConfigError(fmt::format("{} lists no hosts", origin));
  }
  return nodes;
}

int choose_count(int ready, int wanted, int least, const std::function<bool(int nodes)>& fits) {
  for (int count = std::min(ready, wanted); count >= std::max(least, 1); --count) {
    if (fits(count)) {
      return count;
    }
  }
  return 0;
}

std::vector<int> partners_of(const std::vector<NodeSpec>& nodes) {
  const std::size_t count = nodes.size();
  if (count < 2) {
    return std::vector<int>(count, -1);
  }
  const auto apart = [&](std::size_t shift) {
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      pairs += nodes[i].group != nodes[(i + shift) % count].group ? 1 : 0;
    }
    return pairs;
  };
  std::size_t best = 1;
  for (std::size_t shift = 2; shift < count; ++shift) {
    best = apart(shift) > apart(best) ? shift : best;
  }
  std::vector<int> partners;
  for (std::size_t i = 0; i < count; ++i) {
    partners.push_back(static_cast<int>((i + best) % count));
  }
  return partners;
}

}  // namespace trireme
