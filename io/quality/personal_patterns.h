// Counts texts that look like personal data, by their form alone: what is found may be an example,
// and what is not found may still identify a person. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace trireme {

// email          local@host.domain, in ASCII
// phone          +, then 8 to 15 digits, with single spaces, hyphens, dots or parentheses between
// ip_address     four numbers up to 255 with dots, that are not part of a longer number
// payment_card   13 to 19 digits, with single spaces or hyphens between, whose last digit is that
//                of Luhn (ISO/IEC 7812), and that begin with 3 to 6
// iban           two letters, two digits and 11 to 30 letters or digits, with single spaces
// between,
//                whose remainder by 97 is 1 (ISO 13616)
inline constexpr std::array<std::string_view, 5> kPatternNames = {"email", "phone", "ip_address",
                                                                  "payment_card", "iban"};

using PatternCounts = std::array<std::int64_t, kPatternNames.size()>;

PatternCounts count_personal_patterns(std::string_view text);

}  // namespace trireme
