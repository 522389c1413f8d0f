// What the processes of a launch share to recognize each other: its secret (secret.h), and how
// their connections are encrypted. Plain values.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/error.h"

namespace trireme {

// TlsSetting says how connections are encrypted: in TLS 1.3, where both sides authenticate
// themselves by a key that is derived from the secret of the launch, or by certificates of the
// site.
struct TlsSetting {
  bool is_on = true;
  // PEM files, the same paths on all nodes; either all are given or none.
  std::filesystem::path certificate = {};  // of this node, followed by intermediate ones, if any
  std::filesystem::path key = {};
  std::filesystem::path ca = {};  // certificates of the authorities that others' must lead to

  bool uses_certificates() const { return is_on && !certificate.empty(); }
};

struct LaunchSecret {
  // Implicit: a secret alone means the default setting.
  LaunchSecret(std::string secret = {}, TlsSetting setting = {})
      : text(std::move(secret)), tls(std::move(setting)) {}

  std::string text;
  TlsSetting tls;
};

// Refusal says why a connection was refused or cut, and with which code a process ends that cannot
// go on without it. `why` is empty if there is nothing to say but that the other side is gone.
struct Refusal {
  std::string why = {};
  ExitCode code = ExitCode::io;
};

}  // namespace trireme
