#include "slurm/policy/site_list.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>

#include "slurm/policy/nodes.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {

std::map<std::string, std::string> parse_site_list(std::string_view text,
                                                   std::int64_t now_seconds) {
  constexpr std::int64_t kDaySeconds = 86400;
  std::map<std::string, std::string> nodes;
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t first = line.find('\t');
    const std::size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos || !is_host_name(std::string_view(line).substr(0, first))) {
      continue;
    }
    std::int64_t when = 0;
    const auto [end, error] = std::from_chars(&line[first + 1], &line[second], when);
    if (error == std::errc() && end == &line[second] && when <= now_seconds + kDaySeconds &&
        when > now_seconds - kSiteListDays * kDaySeconds) {
      nodes[line.substr(0, first)] = line.substr(second + 1);
    }
  }
  return nodes;
}

std::string site_list_line(const std::string& node, std::int64_t now_seconds,
                           const std::string& why) {
  std::string reason = why.substr(0, 500);
  std::replace_if(
      reason.begin(), reason.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; },
      ' ');
  return fmt::format("{}\t{}\t{}\n", node, now_seconds, reason);
}

std::map<std::string, std::string> read_site_list(const std::filesystem::path& path) {
  constexpr std::int64_t kMostBytes = 64 << 20;
  if (!std::filesystem::exists(path)) {
    return {};
  }
  return parse_site_list(read_file(path, kMostBytes), std::time(nullptr));
}

bool append_to_site_list(const std::filesystem::path& path, const std::string& node,
                         const std::string& why) {
  try {
    const std::string line = site_list_line(node, std::time(nullptr), why);
    File file = File::open_to_append(path);
    // A single write() keeps the lines of concurrent launches apart.
    file.write(line.data(), static_cast<std::int64_t>(line.size()));
    file.close();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace trireme
