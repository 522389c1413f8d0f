// `trireme doctor CONFIG`: what would fail in this launch, before it does. Under mpirun or srun as
// the run will be, or alone.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_doctor_command(CLI::App& app, AppContext& context);

}  // namespace trireme
