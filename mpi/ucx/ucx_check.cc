#include "mpi/ucx/ucx_check.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <ucs/debug/log_def.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// UCX passes no user data to its log handlers, so the text is global.
struct Kept {
  std::mutex mutex;
  std::string text;
};

Kept& kept() {
  static Kept instance;
  return instance;
}

ucs_log_func_rc_t keep(const char*, unsigned, const char*, ucs_log_level_t level,
                       const ucs_log_component_config_t*, const char* format, va_list arguments) {
  if (level != UCS_LOG_LEVEL_ERROR && level != UCS_LOG_LEVEL_WARN) {
    return UCS_LOG_FUNC_RC_CONTINUE;
  }
  std::array<char, 512> text{};
  (void)std::vsnprintf(text.data(), text.size(), format, arguments);
  const std::lock_guard lock(kept().mutex);
  kept().text = text.data();
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void ucx_check(ucs_status_t status, std::string_view call) {
  if (status != UCS_OK) {
    throw CommError(
        fmt::format("{} failed: {}{}", call, ucs_status_string(status), last_ucx_message()));
  }
}

void keep_ucx_messages() {
  static const bool installed = [] {
    const bool wanted = std::getenv("UCX_LOG_LEVEL") == nullptr;
    if (wanted) {
      ucs_log_push_handler(keep);
    }
    return wanted;
  }();
  (void)installed;
}

std::string last_ucx_message() {
  const std::lock_guard lock(kept().mutex);
  return kept().text.empty() ? "" : fmt::format(" (UCX says: {})", kept().text);
}

}  // namespace trireme
