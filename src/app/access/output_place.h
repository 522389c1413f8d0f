// Keeps commands from writing into a checkpoint or a dataset, which hold no other files than those
// that their manifests list: `trireme verify` would call it damaged.
#pragma once

#include <filesystem>
#include <string_view>

namespace trireme {

// Throws ConfigError if a new file or folder would lie in a checkpoint or in a dataset. option:
// that names it, for the message.
void check_in_no_data(std::string_view option, const std::filesystem::path& out);

}  // namespace trireme
