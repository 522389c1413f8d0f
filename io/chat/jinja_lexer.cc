#include "io/chat/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "io/chat/python_text.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using Kind = JinjaToken::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

// Jinja reads all kinds of line ends as \n, and drops the one at the end of the template.
std::string with_plain_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

class JinjaLexer {
 public:
  explicit JinjaLexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  std::vector<JinjaToken> run() {
    while (at_ < source_.size()) {
      data();
      if (at_ < source_.size()) {
        source_[at_ + 1] == '#' ? comment() : tag();
      }
    }
    add(Kind::end, "");
    return std::move(tokens_);
  }

 private:
  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(at_line(line_) + what); }

  bool sees(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }

  void advance(std::size_t bytes) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(bytes), '\n'));
    at_ += bytes;
  }

  // Takes the text up to the next tag.
  void data() {
    std::size_t end = at_;
    for (;; ++end) {
      end = std::min(source_.find('{', end), source_.size());
      if (end + 1 >= source_.size()) {
        end = source_.size();
        break;
      }
      if (std::string_view("{%#").find(source_[end + 1]) != std::string_view::npos) {
        break;
      }
    }
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (end < source_.size()) {
      text = before_tag(text, source_[end + 1], end + 2 < source_.size() ? source_[end + 2] : ' ');
    }
    if (!text.empty()) {
      add(Kind::text, std::string(text));
    }
    advance(end - at_);
  }

  // Returns what the tag behind a text leaves of it.
  std::string_view before_tag(std::string_view text, char tag, char mark) const {
    if (mark == '-') {
      return rstripped(text);
    }
    if (mark == '+' || tag == '{') {
      return text;
    }
    const std::size_t line = text.rfind('\n') + 1;  // 0 if there is no newline
    return (line > 0 || starts_line_) && rstripped(text.substr(line)).empty() ? text.substr(0, line)
                                                                              : text;
  }

  // Takes the end of a tag at at_, with the white space behind it that it drops. Returns false if
  // the tag does not end here.
  bool ends(std::string_view mark, bool trims_line) {
    std::size_t bytes = 0;
    if (sees("-" + std::string(mark))) {
      const std::string_view rest = std::string_view(source_).substr(at_ + 1 + mark.size());
      bytes = 1 + mark.size() + (rest.size() - lstripped(rest).size());
    } else if (trims_line && sees("+" + std::string(mark))) {
      bytes = 1 + mark.size();
    } else if (sees(mark)) {
      bytes = mark.size();
      bytes += trims_line && at_ + bytes < source_.size() && source_[at_ + bytes] == '\n' ? 1 : 0;
    } else {
      return false;
    }
    advance(bytes);
    starts_line_ = source_[at_ - 1] == '\n';
    return true;
  }

  void open_tag() {
    advance(2);
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) {
      advance(1);
    }
  }

  void comment() {
    const int begun = line_;
    open_tag();
    while (!ends("#}", true)) {
      if (at_ >= source_.size()) {
        line_ = begun;
        fail("the comment does not end");
      }
      advance(1);
    }
  }

  void tag() {
    const bool prints = source_[at_ + 1] == '{';
    add(prints ? Kind::print_begin : Kind::block_begin, "");
    const int begun = line_;
    open_tag();
    std::string open;  // brackets
    while (true) {
      const std::string_view rest = std::string_view(source_).substr(at_);
      advance(rest.size() - lstripped(rest).size());
      if (at_ >= source_.size()) {
        line_ = begun;
        fail("the tag does not end");
      }
      const int line = line_;
      if (open.empty() && ends(prints ? "}}" : "%}", !prints)) {
        tokens_.push_back({prints ? Kind::print_end : Kind::block_end, "", line});
        return;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c)) {
      number();
    } else if (starts_name(c)) {
      std::size_t end = at_;
      while (end < source_.size() && continues_name(source_[end])) {
        ++end;
      }
      add(Kind::name, source_.substr(at_, end - at_));
      at_ = end;
    } else if (c == '\'' || c == '"') {
      string(c);
    } else {
      sign(open);
    }
  }

  void number() {
    std::size_t end = at_;
    bool whole = true;
    const auto digits = [&] {
      while (end < source_.size() && is_digit(source_[end])) {
        ++end;
      }
    };
    digits();
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      whole = false;
      ++end;
      digits();
    }
    if (end < source_.size() && continues_name(source_[end])) {
      fail(fmt::format("{}... is a number in a form that is not supported",
                       source_.substr(at_, end + 1 - at_)));
    }
    add(whole ? Kind::integer : Kind::number, source_.substr(at_, end - at_));
    at_ = end;
  }

  void string(char quote) {
    const int begun = line_;
    std::string raw;
    advance(1);
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        raw += source_[at_];
        advance(1);
      }
      raw += source_[at_];
      advance(1);
    }
    if (at_ >= source_.size()) {
      line_ = begun;
      fail("the text in quotes does not end");
    }
    advance(1);
    const auto value = unescaped(raw);
    if (!value) {
      fail(fmt::format("an escape in '{}' is not supported", printable(raw)));
    }
    tokens_.push_back({Kind::string, *value, begun});
  }

  void sign(std::string& open) {
    constexpr std::array<std::string_view, 23> kSigns = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
        "[",  "]",  "(",  ")",  "{",  "}",  ">", "<", "=", ".", ":"};
    std::string_view found;
    for (const std::string_view one : kSigns) {
      if (found.empty() && sees(one)) {
        found = one;
      }
    }
    if (found.empty() && (source_[at_] == '|' || source_[at_] == ',')) {
      found = source_[at_] == '|' ? "|" : ",";
    }
    if (found.empty()) {
      fail(fmt::format("'{}' is not part of the language",
                       printable(std::string_view(source_).substr(at_, 1))));
    }
    constexpr std::string_view kOpening = "[({";
    constexpr std::string_view kClosing = "])}";
    if (kOpening.find(found) != std::string_view::npos) {
      open += found;
    } else if (const std::size_t which = kClosing.find(found); which != std::string_view::npos) {
      if (open.empty() || open.back() != kOpening[which]) {
        fail(fmt::format("'{}' closes nothing", found));
      }
      open.pop_back();
    }
    add(Kind::sign, std::string(found));
    at_ += found.size();
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // the text behind the last tag begins with a line
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::string at_line(int line) { return fmt::format("line {} of the chat template: ", line); }

std::vector<JinjaToken> lex_jinja(std::string_view source) { return JinjaLexer(source).run(); }

}  // namespace trireme
