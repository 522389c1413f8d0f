// `trireme ckpt ls|show|verify|digest|prune`: looks after checkpoints. No MPI: runs anywhere.
#pragma once

#include "src/app/command_line.h"

namespace trireme {

// `exit_code` is set by a command that ends well but has bad news, and outlives the parse.
void add_ckpt_command(CommandLine& app, int& exit_code);

}  // namespace trireme
