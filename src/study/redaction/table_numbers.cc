#include "src/study/redaction/table_numbers.h"

#include <algorithm>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestRow = 4096;  // bytes
constexpr std::ptrdiff_t kLeastSeparators = 2;
constexpr std::string_view kSeveralLines =
    "\"'`[{<|>\\";  // may belong to a text that goes on below

bool begins_with_letter(std::string_view word) {
  return !word.empty() && ((word[0] | 0x20) >= 'a' && (word[0] | 0x20) <= 'z');
}

bool is_header_of(std::string_view line, char separator) {
  while (true) {
    const std::size_t end = end_of_word(line, 0);
    if (!begins_with_letter(line.substr(0, end)) || (end < line.size() && line[end] != separator)) {
      return false;
    }
    if (end == line.size()) {
      return true;
    }
    line.remove_prefix(end + 1);
  }
}

bool is_number_cell(std::string_view cell) {
  return cell.find_first_of("0123456789") != cell.npos &&
         cell.find_first_not_of("0123456789.+-eE") == cell.npos;
}

// Returns where the separator before the numbers at the end of a row stands, or its end.
std::size_t begin_of_numbers(std::string_view row, char separator) {
  std::size_t begin = row.size();
  while (begin > 0) {
    const std::size_t sign = row.substr(0, begin).rfind(separator);
    if (sign == row.npos || !is_number_cell(row.substr(sign + 1, begin - sign - 1))) {
      break;
    }
    begin = sign;
  }
  return begin;
}

}  // namespace

std::optional<ScalarLine> TableNumbers::next(std::string_view text, std::size_t at) {
  const std::string_view near = text.substr(at, kLongestRow);
  const std::string_view line = near.substr(0, near.find_first_of("\r\n"));
  if (separators_ == 0 || std::count(line.begin(), line.end(), separator_) != separators_) {
    const std::size_t sign = line.find_first_of(",;");
    separator_ = sign == line.npos ? ',' : line[sign];
    const auto separators = std::count(line.begin(), line.end(), separator_);
    const bool header = separators >= kLeastSeparators && line.size() < kLongestRow &&
                        is_header_of(line, separator_);
    separators_ = header ? separators : 0;
    return std::nullopt;
  }
  const std::size_t end = begin_of_numbers(line, separator_);
  const std::string_view before = line.substr(0, end);
  if (end == line.size() || line.size() == kLongestRow ||
      before.find_first_of(kSeveralLines) != before.npos || before.find("-----") != before.npos) {
    return std::nullopt;
  }
  Redacted redacted = redact(before);
  const bool secret = redacted.text.find(kRedacted) != std::string::npos;
  return secret ? std::optional(ScalarLine{at + end, std::move(redacted)}) : std::nullopt;
}

}  // namespace trireme
