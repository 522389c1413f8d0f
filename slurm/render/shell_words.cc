#include "slurm/render/shell_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMostNameBytes = 64;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool all_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(),
                     [more](char c) { return is_letter_or_digit(c) || is_one_of(c, more); });
}

// Escapes byte by byte, so that neither the locale nor invalid UTF-8 matters.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '\'') {
      out += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

std::string shell_word(std::string_view text) {
  // A '~' or '=' at the front has a meaning in bash, and an empty word needs quotes.
  if (!text.empty() && text.front() != '=' && all_of(text, "._-+:,=/@%")) {
    return std::string(text);
  }
  const bool quotable = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && !is_one_of(c, "'`$\\");
  });
  return quotable ? fmt::format("'{}'", text) : fmt::format("$'{}'", escaped(text));
}

std::string shell_words(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    words.push_back(shell_word(text));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string shell_comment(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return plain ? std::string(text) : escaped(text);
}

const std::string& sbatch_value(const std::string& what, const std::string& text) {
  if (!all_of(text, "._-+:,=/@%[]*")) {
    throw ConfigError(fmt::format(
        "{}: {} cannot be used in a job script; allowed are letters, digits and ._-+:,=/@%[]*",
        what, shell_word(text)));
  }
  return text;
}

std::string sbatch_name(std::string_view text) {
  std::string name(text.substr(0, kMostNameBytes));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !is_letter_or_digit(c) && !is_one_of(c, "._-+"); }, '_');
  return name.empty() || name.front() == '-' ? "_" + name : name;
}

}  // namespace trireme
