// `trireme config show`: the resolved configuration and where each value came from.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_config_command(CLI::App& app, AppContext& context);

}  // namespace trireme
