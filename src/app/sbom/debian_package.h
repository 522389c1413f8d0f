// A DebianPackage is an installed binary package, as dpkg describes it. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct DebianPackage {
  std::string distribution = "debian";  // or "ubuntu", the namespace of its package URL
  std::string name;
  std::string version;
  std::string architecture;
  std::string source;
  std::string source_version;
  std::string copyright = {};  // path of its copyright file; empty if there is none
};

// Returns "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64" (the package-url specification).
std::string package_url(const DebianPackage& package);

// Reads the text of /var/lib/dpkg/status and returns the installed packages. A paragraph without
// one of the fields needed, or with a value that Debian's policy does not allow there, is omitted.
std::vector<DebianPackage> parse_dpkg_status(std::string_view text);

// Returns "ubuntu" if the text of /etc/os-release says so, else "debian".
std::string distribution_of(std::string_view os_release);

}  // namespace trireme
