#include "src/base/terminal.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace trireme {
namespace {

constexpr int kUsualColumns = 80;
constexpr int kMostColumns = 10'000;

int columns_in_environment() {
  const char* const text = std::getenv(kTerminalColumns);
  const std::string_view word = text == nullptr ? "" : text;
  int columns = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), columns);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  return is_number && columns > 0 && columns <= kMostColumns ? columns : 0;
}

}  // namespace

int terminal_columns() {
  if (::isatty(STDERR_FILENO) == 0) {
    return columns_in_environment();
  }
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

std::string_view line_start() { return terminal_columns() > 0 ? "\r\x1b[K" : ""; }

}  // namespace trireme
