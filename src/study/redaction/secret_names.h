// Tells by a name whether its value is a secret. Pure functions.
#pragma once

#include <string_view>

namespace trireme {

// Returns whether the name of a key, a variable or an option is that of a secret, such as api_key,
// apiKey, DB_PASS or --auth-token.
bool is_secret_name(std::string_view name);
// Returns whether the word before a secret's name, with a blank between them, makes it another one,
// as in "forward pass" and "next token". Most words, such as "export" and "the", do not.
bool is_made_harmless(std::string_view before, std::string_view name);
// Returns whether a word such as PWD is no secret's name whatever stands before it, while "API KEY"
// is one as a whole.
bool is_whole_name(std::string_view word);
// Returns whether a word such as "2" or "old" behind a secret's name tells it from others.
bool is_variant(std::string_view word);
// Returns whether a name may also be that of a count: "token" and "pass" alone, and names whose
// last word is "tokens".
bool counts_something(std::string_view name);
// Returns whether the value of such a name tells nothing: null, true and false and lists of them,
// what benchmarks call a pass, and, if the name may be that of a count, a number or N at its begin,
// and lists and mappings of numbers.
bool is_harmless_value(std::string_view name, std::string_view value);
// Returns whether a word is itself a secret, such as hf_... or AKIA...
bool is_key_of_known_form(std::string_view word);
// Returns whether the word says that a key follows it, as Bearer in HTTP and TRIREME-KEY-1 in the
// key files of this program do.
bool announces_key(std::string_view word);
// Returns the letter of the option that gives a program its password, such as p for sshpass -p, or
// 0. before: the word before the program's.
char password_option(std::string_view program, std::string_view before);
// Returns whether a word is an option that has a secret as its value, such as --auth-token.
bool is_secret_option(std::string_view word);
// Returns whether a secret's name holds "pass", so that a text in quotes may follow it without an
// operator, as in `set DB_PASS "x"`.
bool is_password_name(std::string_view name);
// Returns whether a command takes a name and its value as two words, such as setenv.
bool takes_pair(std::string_view command);
// Returns whether a word is an option behind which a user and a password stand, such as -u.
bool is_user_option(std::string_view word);
// Returns the place behind the u in options of curl that are written in one word, such as -u, -sSu
// and -ujane, or 0. -U means the user of a proxy.
std::size_t behind_user_letter(std::string_view word);
// Returns whether a value is like jane:secret, rather than 1000:1000.
bool is_user_and_password(std::string_view value);
// Returns whether a parameter of a URL signs it or stands for an account, such as X-Amz-Signature.
bool is_secret_parameter(std::string_view name);

}  // namespace trireme
