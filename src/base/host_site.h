// The folder of the host's own files, such as its policy. No variable names another one; the site's
// configuration is read there unless TRIREME_SITE_DIR names another folder (config_binder.h).
#pragma once

namespace trireme {

inline constexpr const char* kHostSiteFolder = "/etc/trireme";

}  // namespace trireme
