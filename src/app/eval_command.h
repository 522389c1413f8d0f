// `trireme eval`: the held-out loss and perplexity of a checkpoint.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_eval_command(CLI::App& app, AppContext& context);

}  // namespace trireme
