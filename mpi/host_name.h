// The name of this host, as gethostname(2) says it.
#pragma once

#include <string>

namespace trireme {

std::string host_name();

}  // namespace trireme
