#include "mpi/session/bundled_mpi.h"

#include <cstdlib>
#include <string>

namespace trireme {
namespace fs = std::filesystem;
namespace {

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // before any thread
}

}  // namespace

// src/packaging/bundle.sh leaves the mark and lays the folders out like Debian.
fs::path bundle_of(const fs::path& program) {
  const fs::path root = program.parent_path().parent_path();
  std::error_code none;
  return fs::is_regular_file(root / "share/trireme/bundle", none) ? root : fs::path();
}

void use_bundled_mpi() {
  std::error_code none;
  const fs::path root = bundle_of(fs::read_symlink("/proc/self/exe", none));
  if (root.empty()) {
    return;
  }
  const fs::path libraries = root / "lib/x86_64-linux-gnu";
  set("OPAL_PREFIX", root);
  set("OPAL_SYSCONFDIR", root / "etc/openmpi");
  set("PMIX_PREFIX", libraries / "pmix2");
  set("PMIX_LIBDIR", libraries / "pmix2/lib");
  set("PMIX_DATAROOTDIR", libraries / "pmix2/share");
  set("UCX_MODULE_DIR", libraries / "ucx");
  const char* const path = std::getenv("PATH");  // before any thread
  set("PATH", (root / "bin").string() + (path == nullptr ? "" : std::string(":") + path));
}

}  // namespace trireme
