// Tells by the words around it whether a word in a log or a command names a host. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/study/anonymity/name_words.h"

namespace trireme {

bool is_number(std::string_view word);   // has only digits
bool has_number(std::string_view word);  // has a digit
// Returns whether the current word is an option with a list of hosts as its value.
bool is_host_option(const NameWords& words);
// Returns whether the current word is a host in a message of a log.
bool is_host_in_log(const NameWords& words);
// Returns whether a list such as n[1-4] in a message of a log begins with the current word.
bool is_host_list_in_log(const NameWords& words);
// Returns the host that is joined to its option, as in "srun -wn1", or "".
std::string_view joined_host(const NameWords& words);
// Returns whether the words before tell that "jane@n1.site.org" is a login, not a mail address.
bool is_login(const NameWords& words);
// Returns the users whose folders below /home a text names.
std::vector<std::string> users_of_homes(std::string_view text);

}  // namespace trireme
