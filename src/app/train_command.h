// `trireme train`: the main job.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_train_command(CLI::App& app, AppContext& context);

}  // namespace trireme
