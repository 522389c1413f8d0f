// The YAML that configurations are written in, flattened: `train: {steps: 5}` becomes the entry
// "train.steps" with its value and line. A careful subset: mappings, scalars and lists of scalars;
// no anchors, aliases or tags, no key twice, bounded in size and depth. An empty mapping is an
// entry of its own. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct ConfigValue {
  enum class Kind { null, scalar, list, mapping };  // a mapping is an empty one
  Kind kind = Kind::null;
  std::vector<std::string> items;  // one for a scalar

  static ConfigValue scalar(std::string text) { return {Kind::scalar, {std::move(text)}}; }
  static ConfigValue list(std::vector<std::string> texts) { return {Kind::list, std::move(texts)}; }
  // As YAML, on one line, quoted where it must be: 5, "a b", [0.9, 0.95], ~, {}
  std::string to_yaml() const;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
  int line = 0;  // from 1
};

constexpr std::int64_t kMaxConfigBytes = 1 << 20;
constexpr int kMaxConfigDepth = 8;
constexpr std::size_t kMaxConfigEntries = 10000;

// The entries in document order. Anything else than the subset is a ConfigError that starts with
// "origin:line: ".
std::vector<ConfigEntry> parse_config(std::string_view yaml, const std::string& origin);

// The word of `known` that `word` was most likely meant to be; empty if none is near. Words with
// dots are compared as wholes and by their last part (a right key in the wrong section).
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace trireme
