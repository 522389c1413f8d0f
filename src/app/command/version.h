// Returns the version of this program and of the libraries that it runs with.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class CommandLine;

// Returns {"program", "version", "commit", "compiler", "hdf5", "mpi", "onednn", ...}.
nlohmann::ordered_json version_json();
// The bill of materials of this process (src/app/sbom) as CycloneDX, without a time: the same
// program with the same libraries and packages gives the same text.
struct BillText {
  std::string uuid;  // made from the digests, names and packages
  std::string text;
};
// Reads the program and all libraries that are loaded. Throws what own_bill_of_materials() throws.
BillText own_bill_text();
// Adds --version, --json and --sbom, which print the version and end the program.
void add_version_flags(CommandLine& app, int& exit_code);

}  // namespace trireme
