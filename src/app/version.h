// What this program is: its version and the libraries it runs with.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class CommandLine;

// {"program", "version", "commit", "compiler", "hdf5", "mpi", "onednn", ...}
nlohmann::ordered_json version_json();
// --version, --json: prints it and ends.
void add_version_flags(CommandLine& app, int& exit_code);

}  // namespace trireme
