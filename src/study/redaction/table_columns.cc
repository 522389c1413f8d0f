#include "src/study/redaction/table_columns.h"

#include <algorithm>

#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"

namespace trireme {
namespace {

constexpr std::string_view kSentence = "0";  // as the name of a column, and no plain name

std::string_view text_of_field(std::string_view text, const TableField& field) {
  return text.substr(field.begin, field.end - field.begin);
}

bool is_digit_of_field(char c) { return c >= '0' && c <= '9'; }

// Returns whether a word rather names a column than it is a value: it begins with no number, and no
// digit stands before a letter.
bool is_plain_name(std::string_view word) {
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  for (std::size_t at = 0; at + 1 < word.size(); ++at) {
    if (is_digit_of_field(word[at]) && is_letter(word[at + 1])) {
      return false;
    }
  }
  return word.empty() || (!is_digit_of_field(word[0]) && word[0] != '-' && word[0] != '.');
}

bool is_number_field(std::string_view own) {
  return own.find_first_not_of("0123456789.+-:/%") == std::string_view::npos;
}

bool is_comment_line(std::string_view line) {
  return line.starts_with('#') || line.starts_with("--") || line.starts_with("//");
}

// Returns how many characters the text has, in which those behind ASCII have several bytes.
std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Returns the places of the fields in characters from the start of their line at `at`.
std::vector<TableField> places_in_line(std::string_view text, std::size_t at,
                                       const std::vector<TableField>& fields) {
  std::vector<TableField> places;
  std::size_t before = 0;
  for (const TableField& field : fields) {
    const std::size_t begin = before + count_characters(text.substr(at, field.begin - at));
    before = begin + count_characters(text_of_field(text, field));
    at = field.end;
    places.push_back({begin, before});
  }
  return places;
}

bool is_below(const TableField& name, const TableField& field) {
  return field.begin == name.begin || field.end == name.end;
}

// Returns whether a comma or semicolon between the fields has a blank behind it.
bool has_spaces(std::string_view text, const std::vector<TableField>& fields, char separator) {
  return is_list_sign(separator) &&
         std::any_of(fields.begin(), fields.end(), [&](const TableField& field) {
           return field.begin > fields[0].begin && text[field.begin - 1] == ' ';
         });
}

std::vector<TableField> fields_of_line(std::string_view text, TableField& line, char separator,
                                       std::size_t most) {
  return separator == kAlignedColumns ? aligned_fields(text, line, 2, most)
                                      : separated_fields(text, line, separator, most);
}

}  // namespace

std::optional<TableColumns> TableColumns::of_header(std::string_view text, TableField& line,
                                                    TableField above) {
  if (line.end - line.begin > kLongestHeader) {
    return std::nullopt;
  }
  for (const char separator : table_separators(text, line)) {
    TableColumns columns(separator);
    TableField whole = line;
    if (columns.take_names(text, whole)) {
      const bool table = !columns.is_entry(text, above) && columns.precedes_row(text, whole);
      line = table ? whole : line;
      return table ? std::optional(std::move(columns)) : std::nullopt;
    }
  }
  return std::nullopt;
}

// In a sentence, too, there are commas between words, so that names of several words need others
// between the columns. Lists of options are no tables. Two columns with blanks or a tab between
// them, the first of which is secret, are rather lines of names and values.
bool TableColumns::take_names(std::string_view text, TableField& line) {
  const std::vector<TableField> fields = fields_of_line(text, line, separator_, kLongestHeader);
  if (line.end - line.begin > kLongestHeader) {
    return false;
  }
  std::size_t named = 0;
  bool several = false;
  const std::ptrdiff_t most_blanks = separator_ == kAlignedColumns ? 1 : 2;
  for (const TableField& field : fields) {
    const std::string_view own = text_of_field(text, field);
    several = several || (own.find(' ') != std::string_view::npos && own[0] != '"');
    const bool sentence = own.starts_with('"') && std::count(own.begin(), own.end(), ' ') > 2;
    names_.push_back(sentence ? std::string(kSentence) : header_name(own));
    secrets_.push_back(is_secret_name(names_.back()));
    named += own.empty() ? 0 : 1;
    if (!is_column_word(names_.back()) || own.starts_with('-') ||
        (!sentence && std::count(own.begin(), own.end(), ' ') > most_blanks) ||
        std::count(own.begin(), own.end(), '(') != std::count(own.begin(), own.end(), ')')) {
      return false;
    }
  }
  const bool spaced = has_spaces(text, fields, separator_);
  const bool pairs =
      (separator_ == kAlignedColumns || separator_ == '\t') && names_.size() == 2 && secrets_[0];
  places_ = places_in_line(text, line.begin, fields);
  numbers_.resize(names_.size());
  words_.resize(names_.size());
  loose_ = spaced;
  const bool secret = std::find(secrets_.begin(), secrets_.end(), true) != secrets_.end();
  return named > 1 && !pairs && secret && !(spaced && several);
}

// Returns whether the names are rather an entry of a list or a table that has a header already: a
// secret's name and its value, or a row of another table.
bool TableColumns::is_entry(std::string_view text, TableField above) const {
  std::vector<std::string> names = names_;
  std::erase(names, "");
  const bool pair = names.size() == 2 && is_secret_name(names[0]);
  // Otherwise a second search would find more than the first one, which replaced the value.
  if (pair && (names[1] == kRedacted || !is_plain_name(names[1]))) {
    return true;
  }
  if ((!pair && has_plain_names()) || above.begin == above.end ||
      above.end - above.begin > kLongestHeader || is_comment_line(text_of_field(text, above))) {
    return false;
  }
  std::vector<TableField> fields = fields_of_line(text, above, separator_, names_.size());
  std::erase_if(fields, [](const TableField& field) { return field.begin == field.end; });
  return fields.size() == names.size() && !has_spaces(text, fields, separator_);
}

// Returns whether a row follows the header, at once or behind a few other lines. Behind names with
// blanks between them, as in a sentence, these must be empty or comments.
bool TableColumns::precedes_row(std::string_view text, TableField line) {
  bool resumed = false;
  TableField next = table_line(text, behind_line(text, line.end));
  for (int i = 0; i <= kMostOddLines && next.begin < text.size(); ++i) {
    const std::string_view own = text_of_field(text, next);
    const bool ruler = is_ruler(own);
    TableField whole = next;
    if (!own.empty() && !ruler && !row(text, whole, resumed).empty()) {
      return true;
    }
    if (loose_ && !own.empty() && !ruler && !is_comment_line(own)) {
      return false;
    }
    resumed = resumed || !ruler;
    next = table_line(text, behind_line(text, next.end));
  }
  return false;
}

bool TableColumns::has_plain_names() const {
  return std::all_of(names_.begin(), names_.end(), is_plain_name);
}

std::vector<TableCell> TableColumns::row(std::string_view text, TableField& line, bool resumed) {
  TableField whole = line;
  std::vector<TableField> fields = fields_of_line(text, whole, separator_, names_.size());
  bool loose = has_spaces(text, fields, separator_);
  if (separator_ == kAlignedColumns && fields.size() != names_.size()) {
    std::vector<TableCell> cells = cells_by_place(text, line, fields);
    if (!cells.empty() || names_.size() == 2) {
      return cells;
    }
    fields = aligned_fields(text, line, 1, names_.size());
    loose = true;
  }
  const bool in_line = is_in_line(text, line.begin, fields);
  if (fields.size() != names_.size() || (resumed && !is_like_rows(text, fields, loose, in_line))) {
    return {};
  }
  learn(text, fields, loose, in_line);
  line = whole;
  std::vector<TableCell> cells;
  for (std::size_t column = 0; column < fields.size(); ++column) {
    cells.push_back({fields[column], column});
  }
  return cells;
}

bool TableColumns::is_other_header(std::string_view text, TableField line) const {
  const std::vector<TableField> fields = fields_of_line(text, line, separator_, names_.size());
  return fields.size() == names_.size() && (loose_ || !has_spaces(text, fields, separator_)) &&
         std::all_of(fields.begin(), fields.end(),
                     [&](const TableField& field) {
                       const std::string own = unquoted(text_of_field(text, field));
                       return is_column_word(own) && is_plain_name(own);
                     }) &&
         !is_like_rows(text, fields, false, true);
}

// Returns the cells of a row that lacks some, if all others begin or end where their names do.
std::vector<TableCell> TableColumns::cells_by_place(std::string_view text, TableField line,
                                                    const std::vector<TableField>& fields) const {
  std::vector<TableCell> cells;
  const std::vector<TableField> places = places_in_line(text, line.begin, fields);
  auto name = places_.begin();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    name = std::find_if(name, places_.end(),
                        [&](const TableField& each) { return is_below(each, places[i]); });
    if (name == places_.end()) {
      return {};
    }
    cells.push_back({fields[i], static_cast<std::size_t>(name++ - places_.begin())});
  }
  return cells.size() > 1 ? cells : std::vector<TableCell>();
}

// Returns whether the fields stand below their names, as far as a value that was replaced cannot
// have moved them.
bool TableColumns::is_in_line(std::string_view text, std::size_t begin,
                              const std::vector<TableField>& fields) const {
  if (separator_ != kAlignedColumns) {
    return true;
  }
  const std::vector<TableField> places = places_in_line(text, begin, fields);
  for (std::size_t column = 0; column < std::min(fields.size(), names_.size()); ++column) {
    const bool replaced = secrets_[column] && text_of_field(text, fields[column]) == kRedacted;
    if (!replaced && !is_below(places_[column], places[column])) {
      return false;
    }
    if (secrets_[column]) {
      break;
    }
  }
  return true;
}

bool TableColumns::is_like_rows(std::string_view text, const std::vector<TableField>& fields,
                                bool loose, bool in_line) const {
  if ((loose && !loose_) || (!in_line && in_line_)) {
    return false;
  }
  for (std::size_t column = 0; column < fields.size(); ++column) {
    const std::string own = unquoted(text_of_field(text, fields[column]));
    if (numbers_[column] && !words_[column] && !secrets_[column] && !is_number_field(own) &&
        own != kRedacted) {
      return false;
    }
  }
  return true;
}

void TableColumns::learn(std::string_view text, const std::vector<TableField>& fields, bool loose,
                         bool in_line) {
  loose_ = loose_ || loose;
  in_line_ = in_line_ && in_line;
  for (std::size_t column = 0; column < fields.size(); ++column) {
    const std::string own = unquoted(text_of_field(text, fields[column]));
    const bool number = is_number_field(own) || own == kRedacted;
    numbers_[column] = numbers_[column] || (number && !own.empty());
    words_[column] = words_[column] || !number;
  }
}

std::array<char, 2> table_separators(std::string_view text, const TableField& line) {
  constexpr std::string_view kSeparators = ",;\t|";
  // Those within the quotes with which a line begins are none.
  const std::size_t behind = behind_quoted_field(text, line);
  if (behind > line.begin && behind < text.size() &&
      kSeparators.find(text[behind]) != std::string_view::npos) {
    return {text[behind], kAlignedColumns};
  }
  const std::string_view own = text_of_field(text, line);
  const std::size_t first = own.find_first_of(kSeparators);
  return {first == std::string_view::npos ? kAlignedColumns : own[first], kAlignedColumns};
}

}  // namespace trireme
