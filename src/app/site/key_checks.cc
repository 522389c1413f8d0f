#include "src/app/site/key_checks.h"

#include <sstream>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/key_uri.h"
#include "src/keys/secret.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostProcBytes = 1 << 16;

// Returns the text of a file in /proc, or "" where it cannot be read.
std::string proc_text(const char* path) {
  try {
    return read_file(path, kMostProcBytes);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

bool may_swap_in_plain(std::string_view swaps) {
  std::istringstream lines{std::string(swaps)};
  std::string line;
  std::getline(lines, line);  // the title
  while (std::getline(lines, line)) {
    // Encrypted swap is a device of the device mapper; compressed swap (zram) stays in memory.
    if (!line.starts_with("/dev/dm-") && !line.starts_with("/dev/mapper/") &&
        !line.starts_with("/dev/zram") && !line.empty()) {
      return true;
    }
  }
  return false;
}

std::vector<Finding> check_keys(const EncryptionConfig& config, bool locks_memory,
                                const std::string& host) {
  std::vector<Finding> found;
  for (const std::string& uri : config.keys) {
    try {
      (void)open_key(uri);
    } catch (const Error& error) {
      Finding finding = error_of(error, host);
      finding.what = fmt::format("encryption.keys: {}", finding.what);
      found.push_back(std::move(finding));
    }
  }
  if (config.keys.empty()) {
    return found;
  }
  if (!Secret(std::size_t{1}).is_locked()) {
    found.push_back(
        warning_of("encryption.keys: the memory of keys cannot be locked, so that the "
                   "system may write it to swap",
                   host, "raise the limit of locked memory (ulimit -l)"));
  }
  if (!locks_memory && may_swap_in_plain(proc_text("/proc/swaps"))) {
    found.push_back(
        warning_of("encryption.keys: this host swaps, and may write weights in plain to "
                   "a disk",
                   host, "set security.lock_memory, or turn swap off, or encrypt it"));
  }
  if (proc_text("/proc/sys/kernel/core_pattern").starts_with('|')) {
    found.push_back(
        warning_of("encryption.keys: core files of this host go to a program, also those of "
                   "processes with keys",
                   host, "let the handler of kernel.core_pattern drop those of trireme"));
  }
  return found;
}

}  // namespace trireme
