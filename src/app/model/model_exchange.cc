#include "src/app/model/model_exchange.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace trireme {

nlohmann::ordered_json logits_json(const LogitDifference& difference) {
  return {{"positions", difference.positions},         {"largest_difference", difference.largest},
          {"largest_logit", difference.largest_logit}, {"relative_difference", difference.relative},
          {"same_choice", difference.same_choice},     {"by_kernels", difference.by_kernels}};
}

void print_logits(const LogitDifference& difference) {
  fmt::print("{}; the most likely token is {}\n", describe(difference),
             difference.same_choice ? "the same at all of them" : "another one at some of them");
  if (!difference.by_kernels) {
    fmt::print(
        "(the model does not fit into this machine's memory: both sides were computed layer by "
        "layer from the files)\n");
  }
}

}  // namespace trireme
