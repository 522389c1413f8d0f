// Tells by a name whether its value is a secret. Pure functions.
#pragma once

#include <string_view>

namespace trireme {

// Returns whether the name of a key, a variable or an option is that of a secret, such as api_key,
// apiKey, DB_PASS or --auth-token.
bool is_secret_name(std::string_view name);
// Returns whether a parameter of a URL signs it or stands for an account, such as X-Amz-Signature.
bool is_secret_parameter(std::string_view name);

}  // namespace trireme
