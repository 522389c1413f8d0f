#include "src/study/redaction/program_text.h"

#include <algorithm>
#include <array>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_sentences.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 9> kTypes = {"str", "string", "text",  "varchar", "char",
                                                    "int", "float",  "bytes", "object"};

// Returns the line before `at` without the blanks at its start.
std::string_view statement_before(std::string_view text, std::size_t at) {
  std::string_view before = line_before(text, at);
  before.remove_prefix(std::min(before.find_first_not_of(" \t"), before.size()));
  return before;
}

bool ends_line(std::string_view text, std::size_t at) {
  const std::size_t next = skip_blanks(text, at);
  return next >= text.size() || text[next] == '\n' || text[next] == '\r' || text[next] == '#';
}

}  // namespace

bool is_statement(std::string_view text, std::size_t begin, std::size_t sign) {
  const std::string_view before = statement_before(text, begin);
  const std::string_view rest = text.substr(sign);
  if (rest.starts_with(":?") || rest.starts_with(":+")) {  // ${NAME:?message} of a shell
    return text.substr(0, begin).ends_with("${");
  }
  if (rest.starts_with(':')) {
    return before.starts_with("for ") && before.ends_with(" in ");
  }
  if (!rest.starts_with("==") ||
      !(before.starts_with("if ") || before.starts_with("elif ") || before.starts_with("while "))) {
    return false;
  }
  const std::size_t value = skip_blanks(text, sign + 2);
  const std::size_t end = end_of_word(text, value);
  return end > value && text.substr(end).starts_with(':') && ends_line(text, end + 1) &&
         !looks_secret(text.substr(value, end - value));
}

bool is_loop_variable(std::string_view text, std::size_t begin) {
  return statement_before(text, begin) == "for " &&
         text.substr(end_of_word(text, begin)).starts_with(" in ");
}

bool is_typed(std::string_view text, std::size_t colon) {
  const std::size_t end = end_of_word(text, colon + 1);
  const bool type = std::find(kTypes.begin(), kTypes.end(),
                              text.substr(colon + 1, end - colon - 1)) != kTypes.end();
  return type && (end == text.size() || std::string_view(",;|\t\r\n").find(text[end]) != text.npos);
}

}  // namespace trireme
