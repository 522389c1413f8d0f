// FrozenModules says which modules of a model keep the weights that they begin with while the
// others are trained (train.frozen). A plain value and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

inline constexpr std::size_t kMostFrozenPaths = 64;

struct FrozenModules {
  // Paths such as model.embed_tokens, model.layers.0-11 or transformer.h.*.attn: components with
  // dots between them, of which each is a name, a number, a range of numbers or * for any. A path
  // stands for all modules that begin with it. Empty: nothing is frozen.
  std::vector<std::string> paths;

  bool is_on() const { return !paths.empty(); }
  // Returns whether one of the paths stands for a module, such as model.layers.0.mlp.up_proj.
  bool holds_module(std::string_view module) const;
  // Returns the same for the module of a parameter, whose name has one component more.
  bool holds(std::string_view parameter) const;
  friend bool operator==(const FrozenModules&, const FrozenModules&) = default;
};

// Returns whether a path stands for a module.
bool stands_for(std::string_view path, std::string_view module);
// Returns the largest last number of the ranges in a path, such as 11; -1 if it has none.
std::int64_t end_of_ranges(std::string_view path);

}  // namespace trireme
