// The commands of `trireme plan`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_plan_calibrate_command(CommandLine& plan, AppContext& context);  // measures this machine
void add_plan_cluster_command(CommandLine& plan);                         // shows a cluster file
void add_plan_network_command(CommandLine& plan);   // shows how collectives scale
void add_plan_schedule_command(CommandLine& plan);  // simulates a pipeline schedule and draws it
void add_plan_simulate_command(CommandLine& plan);  // simulates the failures of a long job
void add_plan_validate_command(CommandLine& plan);  // compares with published runs

}  // namespace trireme
