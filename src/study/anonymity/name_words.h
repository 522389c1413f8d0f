// Reads the words of a text that may be names of hosts and users, and the values behind them.
// Values.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

bool is_letter(char c);
bool is_name(char c);                        // letters, digits, '_' and '-'
std::string lowered(std::string_view text);  // with small ASCII letters in place of capitals

// NameWords reads the names in a text one by one, and the values behind them.
class NameWords {
 public:
  explicit NameWords(std::string_view text) : text_(text) {}

  // Moves to the next name. Returns false at the end.
  bool next();
  std::string_view word() const { return text_.substr(begin_, end_ - begin_); }
  // Returns the name that many names before; 1 for the previous one.
  std::string_view before(std::size_t back) const { return before_[back - 1]; }
  std::string_view rest() const { return text_.substr(end_); }
  char char_before() const { return begin_ == 0 ? '\n' : text_[begin_ - 1]; }

  // Returns the values behind the name if it is a key or a variable: one, or all of a list.
  std::vector<std::string> values() const;
  std::string own_list() const;  // a list such as n[1-4] that begins with the word
  // Returns whether the text right before the word ends in `what`.
  bool follows(std::string_view what) const;
  std::string_view line_before() const;  // what is before the word on its line
  // Returns the text behind the name up to the next blank, as an option's value.
  std::string option_value() const;

 private:
  // Returns the end of a line, brace or comma before the word, if it begins an entry, or 0.
  char before_entry() const;

  bool ends_entry(std::size_t at) const;

  std::string value(std::size_t& at, bool in_list) const;

  std::string_view text_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::array<std::string_view, 3> before_;
};

}  // namespace trireme
