// Parses the YAML of configurations into flat entries: `train: {steps: 5}` becomes the entry
// "train.steps" with its value and line. Accepts a restricted subset: mappings, scalars, and lists
// of scalars or of mappings, without anchors, aliases, tags or duplicate keys, and with bounded
// size and depth. An empty mapping is an entry of its own. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct ConfigValue {
  // A mapping is always empty. `mappings` is a list of mappings: each item is the YAML of one, on
  // one line, as in "{path: a, weight: 2}"; parse_config() reads it.
  enum class Kind { null, scalar, list, mapping, mappings };
  Kind kind = Kind::null;
  std::vector<std::string> items;  // one item for a scalar

  static ConfigValue scalar(std::string text) { return {Kind::scalar, {std::move(text)}}; }
  static ConfigValue list(std::vector<std::string> texts) { return {Kind::list, std::move(texts)}; }
  // Returns YAML on one line, quoted if necessary: 5, "a b", [0.9, 0.95], ~, {}, [{a: 1}].
  std::string to_yaml() const;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
  int line = 0;  // from 1
};

inline constexpr std::int64_t kMaxConfigBytes = 1 << 20;
inline constexpr int kMaxConfigDepth = 8;
inline constexpr std::size_t kMaxConfigEntries = 10000;

// Returns the entries in document order. Throws ConfigError that starts with "origin:line: " if the
// text is not in the subset.
std::vector<ConfigEntry> parse_config(std::string_view yaml, const std::string& origin);

// Returns the word of `known` that `word` was most likely meant to be, or "" if none is near. Words
// with dots are compared whole and by their last parts, to find the right key in the wrong section.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace trireme
