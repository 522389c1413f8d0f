// LoraConfig says which matrix products of a model are fine-tuned by adapters (adapters.h), and how
// large these are. A plain value and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct LoraConfig {
  // Names of modules, as lora_products() lists them for a family, in its order; empty: no adapters.
  std::vector<std::string> products;
  std::int64_t rank = 8;
  double alpha = 16;

  bool is_on() const { return !products.empty(); }
  bool adapts(std::string_view product) const;
  // Returns the factor of what the adapters add (Hu et al., 2021, section 4.1).
  double scale() const { return alpha / static_cast<double>(rank); }
  friend bool operator==(const LoraConfig&, const LoraConfig&) = default;
};

}  // namespace trireme
