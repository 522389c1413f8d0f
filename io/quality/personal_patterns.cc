#include "io/quality/personal_patterns.h"

#include <algorithm>
#include <string>

namespace trireme {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }

// Returns the character, or a space outside the text.
char at_or_space(std::string_view text, std::size_t at) {
  return at < text.size() ? text[at] : ' ';
}
char before(std::string_view text, std::size_t at) { return at == 0 ? ' ' : text[at - 1]; }

struct Digits {
  std::string digits;
  std::size_t end = 0;
};

// Returns the digits that begin at `at`, with at most one of the separators between any two.
Digits digits_at(std::string_view text, std::size_t at, std::string_view separators,
                 std::size_t most) {
  Digits found{{}, at};
  for (std::size_t i = at; i < text.size() && found.digits.size() <= most; ++i) {
    if (is_digit(text[i])) {
      found.digits += text[i];
      found.end = i + 1;
    } else if (separators.find(text[i]) == std::string_view::npos || found.end < i) {
      break;
    }
  }
  return found;
}

bool has_luhn_digit(std::string_view digits) {
  int sum = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    int value = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 1) {
      value = value * 2 > 9 ? value * 2 - 9 : value * 2;
    }
    sum += value;
  }
  return sum % 10 == 0;
}

bool is_host_character(char c) { return is_alphanumeric(c) || c == '-' || c == '.'; }
bool is_local_character(char c) {
  return is_alphanumeric(c) || std::string_view("._%+-").find(c) != std::string_view::npos;
}

// These return where a pattern that begins at `at` ends, or 0.

// at: of the @.
std::size_t end_of_email(std::string_view text, std::size_t at) {
  if (!is_local_character(before(text, at)) || before(text, at) == '.') {
    return 0;
  }
  std::size_t end = at + 1;
  while (end < text.size() && is_host_character(text[end])) {
    ++end;
  }
  std::string_view host = text.substr(at + 1, end - at - 1);
  while (!host.empty() && !is_alphanumeric(host.back())) {
    host.remove_suffix(1);
  }
  const std::size_t dot = host.rfind('.');
  const bool has_domain = dot != std::string_view::npos && dot > 0 && host.size() - dot > 2 &&
                          std::ranges::all_of(host.substr(dot + 1), is_letter) &&
                          is_alphanumeric(host.front()) &&
                          host.find("..") == std::string_view::npos;
  return has_domain ? at + 1 + host.size() : 0;
}

// at: of the +.
std::size_t end_of_phone(std::string_view text, std::size_t at) {
  if (is_alphanumeric(before(text, at)) || !is_digit(at_or_space(text, at + 1))) {
    return 0;
  }
  std::size_t digits = 0;
  std::size_t end = at + 1;
  std::size_t separators = 0;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (is_digit(text[i])) {
      ++digits;
      end = i + 1;
      separators = 0;
    } else if (std::string_view(" -.()").find(text[i]) == std::string_view::npos ||
               ++separators > 2) {
      break;
    }
  }
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 15;  // ITU-T E.164
  return digits >= kLeast && digits <= kMost && !is_alphanumeric(at_or_space(text, end)) ? end : 0;
}

std::size_t end_of_ip_address(std::string_view text, std::size_t at) {
  std::size_t end = at;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && at_or_space(text, end++) != '.') {
      return 0;
    }
    const Digits number = digits_at(text, end, "", 3);
    if (number.digits.empty() || number.digits.size() > 3 || std::stoi(number.digits) > 255) {
      return 0;
    }
    end = number.end;
  }
  const bool goes_on = is_alphanumeric(at_or_space(text, end)) ||
                       (at_or_space(text, end) == '.' && is_digit(at_or_space(text, end + 1)));
  return goes_on ? 0 : end;
}

std::size_t end_of_card(std::string_view text, std::size_t at) {
  constexpr std::size_t kLeast = 13;
  constexpr std::size_t kMost = 19;
  if (text[at] < '3' || text[at] > '6') {
    return 0;
  }
  const Digits number = digits_at(text, at, " -", kMost);
  const bool is_card = number.digits.size() >= kLeast && number.digits.size() <= kMost &&
                       !is_alphanumeric(at_or_space(text, number.end)) &&
                       has_luhn_digit(number.digits);
  return is_card ? number.end : 0;
}

// Returns the remainder by 97 of the number that ISO 13616 makes of an IBAN.
int iban_remainder(std::string_view iban) {
  int remainder = 0;
  const std::string turned = std::string(iban.substr(4)) + std::string(iban.substr(0, 4));
  for (const char c : turned) {
    remainder =
        is_digit(c) ? (remainder * 10 + (c - '0')) % 97 : (remainder * 100 + (c - 'A' + 10)) % 97;
  }
  return remainder;
}

std::size_t end_of_iban(std::string_view text, std::size_t at) {
  constexpr std::size_t kLeast = 15;
  constexpr std::size_t kMost = 34;
  if (!is_upper(at_or_space(text, at + 1)) || !is_digit(at_or_space(text, at + 2)) ||
      !is_digit(at_or_space(text, at + 3))) {
    return 0;
  }
  std::string iban;
  for (std::size_t i = at; i < text.size() && iban.size() <= kMost; ++i) {
    const char c = text[i];
    if (is_digit(c) || is_upper(c)) {
      iban += c;
      if (iban.size() >= kLeast && iban.size() <= kMost &&
          !is_alphanumeric(at_or_space(text, i + 1)) && iban_remainder(iban) == 1) {
        return i + 1;
      }
    } else if (c != ' ' || before(text, i) == ' ') {
      break;
    }
  }
  return 0;
}

}  // namespace

PatternCounts count_personal_patterns(std::string_view text) {
  PatternCounts counts{};
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool begins = !is_alphanumeric(before(text, at));
    std::size_t pattern = 0;
    std::size_t end = 0;
    const auto try_one = [&](std::size_t number, std::size_t found) {
      pattern = found > 0 ? number : pattern;
      end = std::max(end, found);
    };
    if (c == '@') {
      try_one(0, end_of_email(text, at));
    } else if (c == '+') {
      try_one(1, end_of_phone(text, at));
    } else if (is_digit(c) && begins) {
      if (before(text, at) != '.') {
        try_one(2, end_of_ip_address(text, at));
      }
      if (end == 0) {
        try_one(3, end_of_card(text, at));
      }
    } else if (is_upper(c) && begins) {
      try_one(4, end_of_iban(text, at));
    }
    counts.at(pattern) += end > 0 ? 1 : 0;
    at = end > 0 ? end : at + 1;
  }
  return counts;
}

}  // namespace trireme
