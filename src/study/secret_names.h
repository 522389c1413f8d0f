// Tells by a name whether its value is a secret. Pure functions.
#pragma once

#include <string_view>

namespace trireme {

// Returns whether the name of a key, a variable or an option is that of a secret, such as api_key,
// apiKey, DB_PASS or --auth-token.
bool is_secret_name(std::string_view name);
// Returns whether the value of such a name tells nothing: null, true and false, what benchmarks
// call a pass, and numbers of tokens.
bool is_harmless_value(std::string_view name, std::string_view value);
// Returns whether a word is itself a secret, such as hf_... or AKIA...
bool is_key_of_known_form(std::string_view word);
// Returns the letter of the option that gives a program its password, such as p for sshpass -p, or
// 0. before: the word before the program's.
char password_option(std::string_view program, std::string_view before);
// Returns whether a parameter of a URL signs it or stands for an account, such as X-Amz-Signature.
bool is_secret_parameter(std::string_view name);

}  // namespace trireme
