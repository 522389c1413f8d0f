#include "src/study/address_words.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace trireme {
namespace {

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool is_ipv4(std::string_view word) {
  int parts = 1;
  int digits = 0;
  for (const char c : word) {
    if (c == '.') {
      parts += digits > 0 ? 1 : 8;
      digits = 0;
    } else if (c < '0' || c > '9' || ++digits > 3) {
      return false;
    }
  }
  return parts == 4 && digits > 0;
}

bool is_ipv6(std::string_view word) {
  if (word == "::1") {  // this host
    return false;
  }
  std::size_t longest = 0;
  std::size_t shortest = word.size();
  for (std::size_t at = 0; at <= word.size();) {
    const std::size_t end = std::min(word.find(':', at), word.size());
    longest = std::max(longest, end - at);
    shortest = std::min(shortest, end - at);
    at = end + 1;
  }
  const bool hex =
      std::all_of(word.begin(), word.end(), [](char c) { return c == ':' || is_hex(c); });
  const auto colons = std::count(word.begin(), word.end(), ':');
  const std::size_t gap = word.find("::");
  if (!hex || longest > 4) {
    return false;
  }
  if (gap == std::string_view::npos) {
    // Eight groups, or bytes of a hardware address. 1:2:3:4 is none.
    return colons == 7 || ((colons == 5 || colons == 19) && longest == 2 && shortest == 2);
  }
  // a::b is a name in C++.
  const bool digit = word.find_first_of("0123456789") != std::string_view::npos;
  return digit && colons <= 7 && word.find("::", gap + 1) == std::string_view::npos;
}

bool is_hardware_address(std::string_view word) {
  constexpr std::size_t kBytes = 6;
  if (word.size() != 3 * kBytes - 1) {
    return false;
  }
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (at % 3 == 2 ? word[at] != '-' : !is_hex(word[at])) {
      return false;
    }
  }
  return true;
}

bool is_version_next(std::string_view before) {
  constexpr std::size_t kNear = 16;
  std::string near(before.substr(before.size() - std::min(before.size(), kNear)));
  near.erase(near.find_last_not_of(" :=\"'") + 1);
  std::transform(near.begin(), near.end(), near.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return near.ends_with("version") || near.ends_with("driver");
}

bool is_mail(std::string_view word) {
  const std::size_t at = word.find('@');
  return at != std::string_view::npos && at > 0 && word.find('.', at) != std::string_view::npos &&
         word.find(':') == std::string_view::npos;
}

std::size_t address_behind_colon(std::string_view word) {
  for (std::size_t at = word.find(':'); at != std::string_view::npos; at = word.find(':', at + 1)) {
    const std::string_view behind = word.substr(at + 1);
    const std::string_view address = behind.substr(0, behind.find(':'));
    if (is_ipv4(address) || is_ipv6(behind) || is_hardware_address(behind) || is_mail(behind)) {
      return at + 1;
    }
  }
  return 0;
}

}  // namespace trireme
