// Recognizes words that are addresses. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme {

bool is_ipv4(std::string_view word);
// Returns whether a word is an IPv4 address other than 127.0.0.1 and 0.0.0.0.
bool is_remote_address(std::string_view word);
// Returns whether a word begins like 2026-11-29, as in Slurm's [root@2026-11-29T10:00:00].
bool is_date(std::string_view word);
// Returns the end of the IPv4 address that begins at `at`, also within a word such as
// "nccl.10.1.2.3.log", or `at` if there is none. Each number is at most 255, and no further number
// follows or precedes it, as in 1.2.3.4.5.
std::size_t end_of_ipv4(std::string_view text, std::size_t at);
// Returns whether a word is an IPv6 address that begins with a group of four digits, the first of
// which is 2, 3 or f, or a hardware address such as 02:42:ac:11:00:02.
bool is_ipv6(std::string_view word);
// Returns whether what follows a host's name and a dot is a domain, rather than the rest of a
// file's name, such as "log".
bool is_domain(std::string_view name);
bool is_mail(std::string_view word);
// Returns where the address begins in a word such as "eth0:10.0.0.1" or "mailto:jane@site.org", or
// 0 if there is none behind a colon.
std::size_t address_behind_colon(std::string_view word);
// Returns whether the word is a hardware address with dashes and a letter, such as
// 02-42-ac-11-00-02.
bool is_hardware_address(std::string_view word);
// Returns whether the text ends in a word such as "version" or "nccl", so that four numbers behind
// it are no address. If a bracket stands between, as in "nccl [10.1.2.3]", only "version" counts.
bool is_version_next(std::string_view before);

}  // namespace trireme
