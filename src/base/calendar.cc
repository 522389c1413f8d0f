#include "src/base/calendar.h"

#include <algorithm>

namespace trireme {
namespace {

// form: 0 stands for any digit, and each other character for itself.
bool has_form(std::string_view text, std::string_view form) {
  return std::equal(text.begin(), text.end(), form.begin(), form.end(), [](char c, char expected) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
}

int number_at(std::string_view text, std::size_t at, std::size_t digits) {
  int number = 0;
  for (const char digit : text.substr(at, digits)) {
    number = number * 10 + (digit - '0');
  }
  return number;
}

}  // namespace

bool is_day(std::string_view text) {
  if (!has_form(text, "0000-00-00")) {
    return false;
  }
  const int year = number_at(text, 0, 4);
  const int month = number_at(text, 5, 2);
  const int day = number_at(text, 8, 2);
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month >= 1 && month <= 12 && day >= 1 &&
         day <= kDays[month - 1] + (leaps && month == 2 ? 1 : 0);
}

bool is_utc_time(std::string_view text) {
  constexpr std::size_t kDay = 10;
  const std::string_view time = text.substr(std::min(kDay, text.size()));
  return is_day(text.substr(0, kDay)) && has_form(time, "T00:00:00Z") &&
         number_at(time, 1, 2) < 24 && number_at(time, 4, 2) < 60 && number_at(time, 7, 2) < 60;
}

}  // namespace trireme
