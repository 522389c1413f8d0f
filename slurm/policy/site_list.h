// The site's list of bad nodes: a file that launches append to and admins edit. A line:
//
//   node <tab> seconds since the epoch <tab> why
//
// Lines of any other form, and comments (#), are left alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::int64_t kSiteListDays = 30;

// The nodes that were entered within kSiteListDays before `now_seconds`, and why the last time.
std::map<std::string, std::string> parse_site_list(std::string_view text, std::int64_t now_seconds);
std::string site_list_line(const std::string& node, std::int64_t now_seconds,
                           const std::string& why);

// The same of a file; no file is an empty list.
std::map<std::string, std::string> read_site_list(const std::filesystem::path& path);
// Whether it could be written; a launch goes on without.
bool append_to_site_list(const std::filesystem::path& path, const std::string& node,
                         const std::string& why);

}  // namespace trireme
