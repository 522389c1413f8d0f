// Reads any bytes as dpkg's status, as one of its lists and as /etc/os-release. None is refused;
// what a package's name, version or URL may have is limited.
#include <algorithm>

#include "src/app/sbom/dpkg_files.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  for (const DebianPackage& package : parse_dpkg_status(text)) {
    require(!package.name.empty() && !package.version.empty() && !package.architecture.empty());
    require(!package.source.empty() && !package.source_version.empty());
    require(package.name.find('/') == std::string::npos && package.name.front() != '.');
    const std::string url = package_url(package);
    require(std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; }));
    require(std::count(url.begin(), url.end(), '?') == 1);
  }
  const std::set<std::string> wanted = {"/usr/lib/libc.so.6", "/lib/libm.so.6"};
  for (const std::string& path : listed_paths(text, wanted, {"/lib"})) {
    require(wanted.contains(path));
  }
  const std::string distribution = distribution_of(text);
  require(distribution == "debian" || distribution == "ubuntu");
  return 0;
}
