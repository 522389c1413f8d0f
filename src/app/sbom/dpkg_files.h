// Finds the Debian packages of files in the database that dpkg keeps, without running dpkg:
// /var/lib/dpkg/status describes the packages, and /var/lib/dpkg/info/NAME.list or NAME:ARCH.list
// has one path a line. Where Debian has merged /lib into /usr/lib, a list may name a file by either
// path.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/app/sbom/debian_package.h"

namespace trireme {

// Returns the `wanted` paths that the text of a .list file has. A path in the list that begins with
// one of the `merged` folders, such as "/lib", means the one below /usr. Pure.
std::set<std::string> listed_paths(std::string_view list, const std::set<std::string>& wanted,
                                   const std::vector<std::string>& merged);

// Returns the package of each path, or nothing if no installed package has it or the database
// cannot be read. Damaged parts of the database count as absent. paths: without symbolic links, as
// seen from `root`.
std::vector<std::optional<DebianPackage>> debian_packages_of(
    const std::vector<std::string>& paths, const std::filesystem::path& root = "/");

}  // namespace trireme
