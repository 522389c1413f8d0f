// Says in one wording that the system refuses a thread, and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace trireme {

// Returns "no thread can be started", the purpose ("to receive signals") unless it is empty, the
// reason in `error`, and the limits to raise.
std::string no_thread(std::string_view purpose, const std::system_error& error);

}  // namespace trireme
