#include "io/checkpoint/fingerprint.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/printable.h"

namespace trireme {
namespace {

using Fields = std::map<std::string, std::string>;

void flatten(const nlohmann::json& value, const std::string& path, Fields& fields) {
  if (!value.is_object()) {
    fields[path] = value.dump();
    return;
  }
  for (const auto& [key, child] : value.items()) {
    flatten(child, path.empty() ? key : path + "." + key, fields);
  }
}

bool is_allowed(const std::string& name, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& prefix) {
    return name == prefix || name.starts_with(prefix + ".");
  });
}

}  // namespace

std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run) {
  return differences(checkpoint, run, {});
}

std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run,
                                     const std::vector<std::string>& allowed) {
  Fields ours;
  Fields theirs;
  flatten(run, "", ours);
  flatten(checkpoint, "", theirs);
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : theirs) {
    both[name].first = value;
  }
  for (const auto& [name, value] : ours) {
    both[name].second = value;
  }
  std::vector<std::string> lines;
  for (const auto& [name, values] : both) {
    if (values.first != values.second && !is_allowed(name, allowed)) {
      lines.push_back(fmt::format("{}: checkpoint {}, run {}", printable(name),
                                  values.first.empty() ? "has none" : values.first,
                                  values.second.empty() ? "has none" : values.second));
    }
  }
  return lines;
}

}  // namespace trireme
