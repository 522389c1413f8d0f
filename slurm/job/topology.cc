#include "slurm/job/topology.h"

#include <sstream>

#include "slurm/job/host_list.h"
#include "src/base/command.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kScontrolPatience{10};

using Fields = std::map<std::string, std::string>;

Fields fields_of(const std::string& line) {
  std::istringstream words(line);
  Fields fields;
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return fields;
}

// Returns "" for switches above the leaves.
std::string leaf_name(const Fields& fields) {
  if (fields.contains("BlockName")) {
    return fields.at("BlockName");
  }
  const auto level = fields.find("Level");
  const bool leaf = level != fields.end() && level->second == "0";
  return leaf && fields.contains("SwitchName") ? fields.at("SwitchName") : "";
}

}  // namespace

std::map<std::string, std::string> parse_topology(std::string_view text) {
  std::map<std::string, std::string> groups;
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    const Fields fields = fields_of(line);
    const std::string name = leaf_name(fields);
    if (name.empty() || !fields.contains("Nodes")) {
      continue;
    }
    try {
      for (const std::string& node : expand_host_list(fields.at("Nodes"))) {
        groups.emplace(node, name);
      }
    } catch (const ConfigError&) {
      // Nodes=(null): the switch has no nodes.
    }
  }
  return groups;
}

std::map<std::string, std::string> slurm_topology() {
  const CommandResult shown = run_command({"scontrol", "show", "topology"}, kScontrolPatience);
  return shown.good() ? parse_topology(shown.output) : std::map<std::string, std::string>{};
}

}  // namespace trireme
