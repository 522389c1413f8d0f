// LaunchTls says how the connections of `trireme launch` are protected (docs/security.md). It is
// not part of RunConfig: ranks have nothing to do with it.
#pragma once

#include <filesystem>

#include "src/base/config_binder.h"

namespace trireme {

struct LaunchTls {
  bool is_on = true;
  // PEM files, all given or none. With none, a key that is made for each launch authenticates its
  // processes.
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  std::filesystem::path ca = {};
};

// Binds the keys launch.tls and launch.tls.*.
void bind_launch_tls(ConfigBinder& binder);
// Returns what the keys say, once they are bound and valid by themselves.
LaunchTls launch_tls(const ConfigBinder& binder);
// Reports contradictions between the keys to the binder.
void check_launch_tls(ConfigBinder& binder);

}  // namespace trireme
