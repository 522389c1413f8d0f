#include "src/app/access/confirmation.h"

#include <cstdio>
#include <iostream>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

bool is_typed(const std::string& word, const char* ask, const std::string& what) {
  if (::isatty(STDIN_FILENO) == 0) {
    return false;
  }
  fmt::print(stderr, "{} '{}' to {}: ", ask, printable(word), what);
  std::string line;
  std::getline(std::cin, line);
  return line == word;
}

}  // namespace

void confirm_twice(const std::string& word, const std::vector<std::string>& given,
                   const ConfirmationTexts& texts) {
  for (std::size_t time = 0; time < 2; ++time) {
    const bool is_confirmed = given.size() > time
                                  ? given[time] == word
                                  : is_typed(word, time == 0 ? "Type" : "Type again",
                                             time == 0 ? texts.first : texts.second);
    if (!is_confirmed) {
      throw PolicyError(
          fmt::format("{0}: confirm twice, at a terminal or with --confirm {1} --confirm {1}",
                      texts.refusal, printable(word)));
    }
  }
}

}  // namespace trireme
