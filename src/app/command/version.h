// Returns the version of this program and of the libraries that it runs with.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class CommandLine;

// Returns {"program", "version", "commit", "compiler", "hdf5", "mpi", "onednn", ...}.
nlohmann::ordered_json version_json();
// Adds --version, --json and --sbom, which print the version and end the program.
void add_version_flags(CommandLine& app, int& exit_code);

}  // namespace trireme
