#include "src/train/run/launch_tls.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace trireme {
namespace {

constexpr const char* kSwitch = "launch.tls";
constexpr const char* kCertificate = "launch.tls.certificate";
constexpr const char* kKey = "launch.tls.key";
constexpr const char* kAuthority = "launch.tls.ca";

// Returns the text of a key, or "" for none.
std::string value_of(const ConfigBinder& binder, std::string_view key) {
  const auto& all = binder.resolved();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ResolvedKey& one) { return one.key == key; });
  return found == all.end() || found->value.items.empty() ? "" : found->value.items.front();
}

}  // namespace

void bind_launch_tls(ConfigBinder& b) {
  LaunchTls defaults;
  b.boolean(kSwitch, defaults.is_on,
            "encrypt the connections of trireme launch, and authenticate both sides, in TLS 1.3 "
            "(docs/security.md)");
  b.path(kCertificate, defaults.certificate,
         "certificate of the node in PEM, the same path on all nodes; empty: a key is made for "
         "each launch");
  b.path(kKey, defaults.key, "private key of that certificate in PEM");
  b.path(kAuthority, defaults.ca,
         "certificates in PEM of the authorities that have issued those of the nodes");
}

LaunchTls launch_tls(const ConfigBinder& binder) {
  return {value_of(binder, kSwitch) == "true", value_of(binder, kCertificate),
          value_of(binder, kKey), value_of(binder, kAuthority)};
}

void check_launch_tls(ConfigBinder& b) {
  const LaunchTls tls = launch_tls(b);
  const std::array<std::pair<const char*, bool>, 3> given = {
      {{kCertificate, !tls.certificate.empty()},
       {kKey, !tls.key.empty()},
       {kAuthority, !tls.ca.empty()}}};
  const auto count =
      std::count_if(given.begin(), given.end(), [](auto& one) { return one.second; });
  if (count == 0) {
    return;
  }
  if (!tls.is_on) {
    b.refuse(kSwitch,
             "false contradicts launch.tls.certificate, launch.tls.key and launch.tls.ca: remove "
             "one or the other");
  }
  for (const auto& [key, is_given] : given) {
    if (!is_given) {
      b.refuse(key, "is missing: launch.tls needs certificate, key and ca, or none of them");
    }
  }
}

}  // namespace trireme
