#include "src/evaluation/python_text.h"

#include <memory>
#include <type_traits>

#include <locale.h>
#include <wctype.h>

#include "io/tokens/unicode.h"
#include "src/base/error.h"

namespace trireme {
namespace {

struct LocaleDeleter {
  void operator()(locale_t locale) const { ::freelocale(locale); }
};
using Locale = std::unique_ptr<std::remove_pointer_t<locale_t>, LocaleDeleter>;

}  // namespace

bool is_python_space(char32_t code) {
  return (code >= 0x1C && code <= 0x1F) || (character_class(code) & kSpace) != 0;
}

std::string_view python_rstrip(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_python_space(next_character(text, at))) {
      end = at;
    }
  }
  return text.substr(0, end);
}

std::string_view python_strip(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size() && is_python_space(next_character(text, at));) {
    begin = at;
  }
  return python_rstrip(text.substr(begin));
}

std::string python_capitalized(std::string_view text) {
  Locale locale;
  std::string result;
  bool first = true;
  for (std::size_t at = 0; at < text.size(); first = false) {
    const char32_t code = next_character(text, at);
    if (code < 0x80) {
      const bool is_upper = code >= 'A' && code <= 'Z';
      const bool is_lower = code >= 'a' && code <= 'z';
      result +=
          static_cast<char>(first ? (is_lower ? code - 32 : code) : (is_upper ? code + 32 : code));
      continue;
    }
    if (locale == nullptr) {
      locale.reset(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr));
      if (locale == nullptr) {
        throw ConfigError(
            "the system has no locale C.UTF-8, which says how letters beyond ASCII are "
            "capitalized: install it (package locales, or libc-bin of Debian)");
      }
    }
    const auto wide = static_cast<std::wint_t>(code);
    append_utf8(static_cast<char32_t>(first ? ::towupper_l(wide, locale.get())
                                            : ::towlower_l(wide, locale.get())),
                result);
  }
  return result;
}

std::string python_replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != std::string_view::npos;
       found = text.find(from, at)) {
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return result.append(text.substr(at));
}

}  // namespace trireme
