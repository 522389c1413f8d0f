// Recognizes words that are addresses. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme {

bool is_ipv4(std::string_view word);
// Returns whether a word is an IPv6 or hardware address, such as 02:42:ac:11:00:02. A time of day
// has two colons, and is none.
bool is_ipv6(std::string_view word);
bool is_mail(std::string_view word);
// Returns where the address begins in a word such as "eth0:10.0.0.1" or "mailto:jane@site.org", or
// 0 if there is none behind a colon.
std::size_t address_behind_colon(std::string_view word);
// Returns whether the word is a hardware address with dashes, such as 02-42-ac-11-00-02.
bool is_hardware_address(std::string_view word);
// Returns whether the text ends in "version" or "driver", so that four numbers are no address.
bool is_version_next(std::string_view before);

}  // namespace trireme
