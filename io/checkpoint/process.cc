#include "io/checkpoint/process.h"

#include <fstream>
#include <sstream>

#include <fmt/core.h>

namespace trireme {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string current_boot_id() {
  std::string id = contents_of("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') {
    id.pop_back();
  }
  return id;
}

std::optional<std::int64_t> process_start_time(std::int64_t pid) {
  // The start time is field 22 of stat (proc(5)); the command in field 2 may contain spaces and
  // parentheses.
  const std::string stat = contents_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t command_end = stat.rfind(')');
  if (command_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(stat.substr(command_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) {
    fields >> field;
    if (number == 3 && (field == "Z" || field == "X")) {
      return std::nullopt;  // a zombie, which its parent has not yet waited for
    }
  }
  return fields ? std::optional(std::stoll(field)) : std::nullopt;
}

}  // namespace trireme
