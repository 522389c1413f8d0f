// The site list of bad nodes is a file that launches append to and administrators edit. Its lines
// are
//
//   node <tab> seconds since the epoch <tab> why
//
// Comments (#) and lines of any other form are ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::int64_t kSiteListDays = 30;

// Returns the nodes that were entered within kSiteListDays before `now_seconds`, with the latest
// reason of each.
std::map<std::string, std::string> parse_site_list(std::string_view text, std::int64_t now_seconds);
std::string site_list_line(const std::string& node, std::int64_t now_seconds,
                           const std::string& why);

// Reads the site list from a file; a missing file is an empty list.
std::map<std::string, std::string> read_site_list(const std::filesystem::path& path);
// Returns whether the entry was written. Launches continue if it was not.
bool append_to_site_list(const std::filesystem::path& path, const std::string& node,
                         const std::string& why);

}  // namespace trireme
