// Failure rates of large training jobs, as published. docs/planner-simulate.md quotes the sources.
// Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct PublishedRates {
  std::string_view name;    // value of rates.source
  std::string_view source;  // paper, section
  // Per 1000 days of a node.
  double process = 0;
  double hang = 0;
  double node = 0;
};

const std::vector<PublishedRates>& published_rates();
std::vector<std::string> published_rate_names();
// name: one of published_rate_names().
const PublishedRates& published_rates_of(std::string_view name);

}  // namespace trireme
