// `trireme ckpt ls|show|verify|digest|prune`: looks after checkpoints. No MPI: runs anywhere.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

// `exit_code` is set by a command that ends well but has bad news, and outlives the parse.
void add_ckpt_command(CLI::App& app, int& exit_code);

}  // namespace trireme
