// Formats an account as the output of `trireme launch report`. Pure functions.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "slurm/journal/account.h"

namespace trireme {

// Formats a table of causes, followed by one of attempts.
std::string to_text(const Account& account);
nlohmann::ordered_json to_json(const Account& account);

}  // namespace trireme
