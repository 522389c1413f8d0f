#include "src/base/lock_mark.h"

#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::string_view kPrefix = "held by ";
constexpr std::int64_t kMostMarkBytes = 4096;

}  // namespace

std::string own_lock_mark() {
  return fmt::format("{}host {}, process {} (since {})\n", kPrefix, host_name(), ::getpid(),
                     utc_now());
}

std::string lock_holder_text(const std::filesystem::path& locked_file) {
  try {
    const std::string text = "\n" + read_file(locked_file, kMostMarkBytes);
    const std::size_t at = text.find(fmt::format("\n{}", kPrefix));
    const std::size_t start = at + 1 + kPrefix.size();
    const std::size_t end = at == std::string::npos ? at : text.find('\n', start);
    return end == std::string::npos ? "" : ": " + printable(text.substr(start, end - start));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace trireme
