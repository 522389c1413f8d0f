// What the commands `import` and `export` print about the comparison of logits.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/interchange/logit_check.h"

namespace trireme {

nlohmann::ordered_json logits_json(const LogitDifference& difference);
void print_logits(const LogitDifference& difference);

}  // namespace trireme
