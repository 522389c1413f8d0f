#include "src/study/pair_redaction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/study/assigned_text.h"
#include "src/study/secret_names.h"
#include "src/study/secret_text.h"
#include "src/study/table_fields.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kMostValues = 4096;  // in one line
constexpr std::size_t kLongestName = 256;  // bytes of the name of a pair
constexpr std::string_view kBetween = ",;\t|";
constexpr char kBlanks = ' ';  // stands for at least two of them between a name and its value

bool is_list(char separator) { return separator == ',' || separator == ';'; }

bool is_in_quotes(std::string_view field) {
  return field.size() > 1 && (field.front() == '"' || field.front() == '\'') &&
         field.front() == field.back();
}

// Removes brackets that are opened before the field, such as those of a list around it.
std::size_t end_without_brackets(std::string_view text, TableField field) {
  const auto count = [&](std::string_view brackets) {
    return std::count_if(text.begin() + static_cast<std::ptrdiff_t>(field.begin),
                         text.begin() + static_cast<std::ptrdiff_t>(field.end),
                         [&](char c) { return brackets.find(c) != std::string_view::npos; });
  };
  for (auto surplus = count(")]}") - count("([{");
       surplus > 0 && field.end > field.begin &&
       std::string_view(")]}").find(text[field.end - 1]) != std::string_view::npos;
       --surplus) {
    --field.end;
  }
  return field.end;
}

struct SecretPair {
  std::string name;
  bool quoted = false;
  bool may_count = false;  // as joules/token, or the place of tokens
  char separator = kBlanks;
  std::size_t values = 0;  // where they begin
};

// Scans a text line by line, and copies it without the values of secret names.
class PairScan {
 public:
  explicit PairScan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      TableField line = table_line(text_, at_);
      if (const auto pair = pair_in(line); pair && !is_header_of_counts(*pair, line)) {
        replace_values(*pair, line);
      }
      copy_to(behind_line(text_, line.end));
    }
    return std::move(result_);
  }

 private:
  void copy_to(std::size_t end) {
    result_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  // Returns the place behind what may stand before a name: blanks, dashes of a list, one bar.
  std::size_t begin_of_name(const TableField& line) const {
    std::size_t at = line.begin;
    at += at == 0 && text_.starts_with("\ufeff") ? 3 : 0;
    bool bar = false;
    for (; at < line.end; ++at) {
      const bool dash = text_[at] == '-' && at + 1 < line.end && is_blank(text_[at + 1]);
      if (!is_blank(text_[at]) && !dash && (text_[at] != '|' || bar)) {
        break;
      }
      bar = bar || text_[at] == '|';
    }
    return at;
  }

  std::size_t end_of_name(std::size_t begin, std::size_t end) const {
    if (text_[begin] == '"' || text_[begin] == '\'') {
      const std::size_t close = text_.substr(0, end).find(text_[begin], begin + 1);
      return close == std::string_view::npos ? begin : close + 1;
    }
    std::size_t at = begin;
    while (at < end && kBetween.find(text_[at]) == std::string_view::npos &&
           (text_[at] != ' ' || (at + 1 < end && text_[at + 1] != ' '))) {
      ++at;
    }
    return at > begin && text_[at - 1] == ' ' ? at - 1 : at;
  }

  // Returns the secret name at the start of a line if other fields follow it.
  std::optional<SecretPair> pair_in(const TableField& line) const {
    const std::size_t begin = begin_of_name(line);
    const std::size_t most = std::min(line.end, begin + kLongestName);
    const std::size_t end = begin < line.end ? end_of_name(begin, most) : begin;
    std::size_t at = end;
    while (at < line.end && text_[at] == ' ') {
      ++at;
    }
    if (at >= line.end || end == begin || text_[begin] == '-') {
      return std::nullopt;
    }
    SecretPair pair;
    std::string_view own = text_.substr(begin, end - begin);
    pair.quoted = is_in_quotes(own);
    own = pair.quoted ? own.substr(1, own.size() - 2) : own;
    pair.name = column_name(own);
    if (const std::size_t slash = own.rfind('/'); slash != std::string_view::npos) {
      const std::string last = column_name(own.substr(slash + 1));
      pair.may_count = last == "token" || last == "tokens";
    }
    pair.separator = kBetween.find(text_[at]) != std::string_view::npos ? text_[at] : kBlanks;
    pair.may_count = pair.may_count || pair.name == "tokens";
    pair.values = skip_blanks(text_, at + (pair.separator == kBlanks ? 0 : 1));
    const auto blanks = std::count(own.begin(), own.end(), ' ');
    const bool words = blanks <= (pair.quoted || pair.separator == '|' ? 2
                                  : is_list(pair.separator)            ? 0
                                                                       : 1);
    const bool apart = pair.separator != kBlanks || at - end > 1;
    const bool good = words && apart && is_column_word(pair.name) && is_secret_name(pair.name) &&
                      pair.values < line.end &&
                      (is_list(pair.separator) || assignment_at(text_, pair.values) == 0);
    return good ? std::optional(pair) : std::nullopt;
  }

  // Returns whether the line is the header of a table of passes or numbers of tokens.
  bool is_header_of_counts(const SecretPair& pair, const TableField& line) const {
    if (!pair.name.ends_with("pass") && !pair.name.ends_with("tokens")) {
      return false;
    }
    TableField next = table_line(text_, behind_line(text_, line.end));
    if (is_ruler(text_.substr(next.begin, next.end - next.begin))) {
      next = table_line(text_, behind_line(text_, next.end));
    }
    const std::size_t begin = std::min(begin_of_name(next), next.end);
    const std::size_t end = begin < next.end ? end_of_name(begin, next.end) : begin;
    return end > begin && is_harmless_value(pair.name, text_.substr(begin, end - begin));
  }

  void replace_values(const SecretPair& pair, TableField& line) {
    std::vector<TableField> fields;
    if (pair.separator == kBlanks) {
      fields = aligned_fields(text_, {pair.values, line.end}, 2, kMostValues);
      const bool tab =
          text_.substr(pair.values, line.end - pair.values).find('\t') != std::string_view::npos;
      if (fields.size() > 1 && !tab) {
        std::erase_if(fields, [&](const TableField& field) {
          return !looks_secret(text_.substr(field.begin, field.end - field.begin));
        });
      }
    } else {
      TableField rest = {pair.values, line.end};
      fields = separated_fields(text_, rest, pair.separator, kMostValues);
      line.end = rest.end;
    }
    // A list or an object of JSON is left to the search for pairs in quotes.
    const bool structured = pair.quoted && is_list(pair.separator) &&
                            std::any_of(fields.begin(), fields.end(), [&](const TableField& field) {
                              return field.end > field.begin &&
                                     (text_[field.begin] == '{' || text_[field.begin] == '[');
                            });
    for (const TableField& field : structured ? std::vector<TableField>() : fields) {
      replace(pair, field);
    }
  }

  void replace(const SecretPair& pair, TableField field) {
    const bool spaced = field.begin > 0 && text_[field.begin - 1] == ' ';
    if (is_list(pair.separator) && (pair.quoted || spaced)) {
      field.end = end_without_brackets(text_, field);
    }
    const std::string_view own = text_.substr(field.begin, field.end - field.begin);
    const bool quoted = is_in_quotes(own);
    const std::string_view value = quoted ? own.substr(1, own.size() - 2) : own;
    if (value.empty() || value == kRedacted || is_ruler(own) ||
        is_harmless_value(pair.may_count ? "tokens" : pair.name, value) ||
        (pair.may_count && (value.find(' ') != std::string_view::npos || !looks_secret(value)))) {
      return;
    }
    const std::size_t quote = quoted ? 1 : 0;
    const std::string_view added = pair.quoted && !quoted && is_list(pair.separator) ? "\"" : "";
    copy_to(field.begin + quote);
    result_.text += added;
    result_.text += kRedacted;
    result_.text += added;
    ++result_.secrets;
    at_ = field.end - quote;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Redacted result_;
};

}  // namespace

Redacted redact_pairs(std::string_view text) { return PairScan(text).run(); }

}  // namespace trireme
