// `trireme generate`: text from a checkpoint, token by token.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_generate_command(CLI::App& app, AppContext& context);

}  // namespace trireme
