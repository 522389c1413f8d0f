#include "src/study/redaction/json_redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/redaction.h"
#include "src/study/redaction/secret_names.h"

namespace trireme {
namespace {

bool is_string(std::string_view token) { return token.starts_with('"'); }
// Returns whether a string of JSON is the text between its quotes.
bool is_plain(std::string_view string) {
  return std::all_of(string.begin(), string.end(),
                     [](char c) { return c >= ' ' && c < 0x7f && c != '\\'; });
}
bool is_open(std::string_view token) { return token == "{" || token == "["; }
bool is_close(std::string_view token) { return token == "}" || token == "]"; }

// Reads the tokens of JSON one by one, and checks that they are where they may be.
class JsonTokens {
 public:
  JsonTokens(std::string_view text, std::size_t at) : text_(text), end_(at) {}

  // Moves to the next token. Returns false behind the value, and where the text is no JSON.
  bool next() {
    if (done_) {
      return false;
    }
    begin_ = std::min(text_.find_first_not_of(" \t\r\n", end_), text_.size());
    end_ = begin_ == text_.size() ? begin_ : end_of_token();
    return end_ > begin_ && accept();
  }
  bool done() const { return done_; }
  bool is_key() const { return is_key_; }
  std::string_view token() const { return text_.substr(begin_, end_ - begin_); }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  std::size_t depth() const { return open_.size(); }

 private:
  enum class Expect { value, value_or_end, key, key_or_end, colon, comma_or_end };

  std::size_t end_of_token() const {
    if (std::string_view("{}[]:,").find(text_[begin_]) != std::string_view::npos) {
      return begin_ + 1;
    }
    if (text_[begin_] != '"') {
      const std::size_t end =
          std::min(text_.find_first_not_of("abcdefghijklmnopqrstuvwxyzEIN+-.0123456789", begin_),
                   text_.size());
      return is_scalar(text_.substr(begin_, end - begin_)) ? end : begin_;
    }
    for (std::size_t at = begin_ + 1; at < text_.size(); ++at) {
      if (text_[at] == '"') {
        const std::string_view string = text_.substr(begin_, at + 1 - begin_);
        return is_plain(string) || nlohmann::json::accept(string) ? at + 1 : begin_;
      }
      if (text_[at] == '\n') {
        break;
      }
      at += text_[at] == '\\' ? 1 : 0;
    }
    return begin_;
  }

  // Also those that Python writes.
  static bool is_scalar(std::string_view word) {
    constexpr std::array<std::string_view, 6> kWords = {"null", "true",     "false",
                                                        "NaN",  "Infinity", "-Infinity"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
           (!word.empty() &&
            (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0])) != 0) &&
            word.find_first_not_of("0123456789+-.eE") == std::string_view::npos);
  }

  bool accept() {
    const char c = text_[begin_];
    is_key_ = false;
    switch (expect_) {
      case Expect::key:
      case Expect::key_or_end:
        if (c == '"') {
          is_key_ = true;
          expect_ = Expect::colon;
          return true;
        }
        return c == '}' && expect_ == Expect::key_or_end && close(c);
      case Expect::colon:
        expect_ = Expect::value;
        return c == ':';
      case Expect::comma_or_end:
        if (c == ',') {
          expect_ = open_.back() == '{' ? Expect::key : Expect::value;
          return true;
        }
        return (c == '}' || c == ']') && close(c);
      default:
        break;
    }
    if (c == '{' || c == '[') {
      open_ += c;
      expect_ = c == '{' ? Expect::key_or_end : Expect::value_or_end;
      return true;
    }
    if (c == ']') {
      return expect_ == Expect::value_or_end && close(c);
    }
    ends_value();
    return c != '}' && c != ':' && c != ',';
  }

  bool close(char bracket) {
    const bool pair = open_.back() == (bracket == '}' ? '{' : '[');
    open_.pop_back();
    ends_value();
    return pair;
  }
  void ends_value() {
    expect_ = Expect::comma_or_end;
    done_ = open_.empty();
  }

  std::string_view text_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string open_;  // brackets
  Expect expect_ = Expect::value;
  bool is_key_ = false;
  bool done_ = false;
};

// Preconditions: a valid string of JSON.
std::string decoded(std::string_view string) {
  return is_plain(string) ? std::string(string.substr(1, string.size() - 2))
                          : nlohmann::json::parse(string).get<std::string>();
}

// Returns whether a value under a secret name tells something.
bool is_secret_value(std::string_view name, std::string_view value) {
  for (JsonTokens tokens(value, 0); tokens.next();) {
    const std::string_view token = tokens.token();
    const bool mark = is_open(token) || is_close(token) || token == ":" || token == ",";
    const std::string_view plain = is_string(token) ? token.substr(1, token.size() - 2) : token;
    if (!mark && !tokens.is_key() && plain != kRedacted && !is_harmless_value(name, plain)) {
      return true;
    }
  }
  return false;
}

class JsonScan {
 public:
  JsonScan(std::string_view text, std::string& out) : json_(text), out_(out), tokens_(text, 0) {}

  std::int64_t run() {
    while (tokens_.next()) {
      const std::string_view token = tokens_.token();
      copy_to(tokens_.begin());
      if (tokens_.is_key()) {
        levels_.back().key = decoded(token);
        levels_.back().value = Place{};
        copy_string(token);
      } else if (is_close(token)) {
        copy_to(tokens_.end());
        reveal_pairs();
        levels_.pop_back();
        ends_value();
      } else if (is_open(token) || (token != ":" && token != ",")) {
        value();
      }
    }
    copy_to(json_.size());
    return secrets_;
  }

 private:
  // A value of an object, whose name may follow: places in the JSON and in `out`.
  struct Place {
    std::size_t begin = 0, out_begin = 0, end = 0, out_end = 0;
  };
  // An object or an array around the current token.
  struct Nesting {
    bool object = false;
    std::string key;                 // of an object
    Place value;                     // the current one
    std::vector<Place> values;       // those of keys such as "value"
    std::vector<std::string> names;  // values of keys such as "name"
    std::vector<std::string> words;  // the strings of an array: the first and the last one
    char letter = 0;                 // password_option of an array that is a command line
    bool curl = false;               // whether it is one of curl
  };

  void copy_to(std::size_t end) {
    out_ += json_.substr(at_, end - at_);
    at_ = end;
  }

  void copy_string(std::string_view token) {
    const std::string plain = decoded(token);
    const Redacted redacted = redact(plain);
    secrets_ += redacted.secrets;
    if (redacted.text == plain) {
      copy_to(tokens_.end());
    } else {
      out_ += nlohmann::json(redacted.text).dump();
      at_ = tokens_.end();
    }
  }

  void value() {
    const std::string_view token = tokens_.token();
    const std::string name = secret_name();
    if (!levels_.empty()) {
      levels_.back().value = {tokens_.begin(), out_.size(), 0, 0};
    }
    if (!name.empty()) {
      const std::size_t begin = tokens_.begin();
      const std::size_t outside = tokens_.depth() - (is_open(token) ? 1 : 0);
      while (tokens_.depth() > outside && tokens_.next()) {
      }
      if (is_secret_value(name, json_.substr(begin, tokens_.end() - begin))) {
        ++secrets_;
        out_ += fmt::format("\"{}\"", kRedacted);
        at_ = tokens_.end();
      } else {
        copy_to(tokens_.end());
      }
      learn(token);
      ends_value();
    } else if (is_open(token)) {
      levels_.emplace_back().object = token == "{";
      copy_to(tokens_.end());
    } else if (is_string(token)) {
      learn(token);
      copy_string(token);
      ends_value();
    } else {
      copy_to(tokens_.end());
      ends_value();
    }
  }

  // Returns the name that makes the value at the current token a secret, or "".
  std::string secret_name() const {
    if (levels_.empty()) {
      return "";
    }
    const Nesting& level = levels_.back();
    if (level.object) {
      return is_secret_name(level.key) || level.key == "auth" ? level.key : "";
    }
    if (!is_string(tokens_.token()) || level.words.empty()) {
      return "";
    }
    // ["--password", "x"], ("API_KEY", "x") and ["sshpass", "-p", "x"]
    const std::string& before = level.words.back();
    const std::string own = decoded(tokens_.token());
    const bool word = end_of_word(before, 0) == before.size();
    const bool option = is_secret_option(before) && !own.starts_with('-');
    const bool program = password_option(before, "") != 0;  // sshpass
    if (word && (before.starts_with('-') ? option : level.words.size() == 1 && !program) &&
        is_secret_name(before)) {
      return before;
    }
    const std::string letters = {'-', level.letter};
    const bool apart = before == letters;
    const bool joined = letters == "-p" && own.size() > 2 && own.starts_with(letters);
    const std::size_t user_letter = level.curl ? behind_user_letter(before) : 0;
    const std::size_t own_letter = level.curl ? behind_user_letter(own) : 0;
    const bool user = is_user_option(before) || (user_letter > 0 && user_letter == before.size()) ||
                      (own_letter > 0 && own_letter < own.size());
    const bool login = user && is_user_and_password(own);
    return apart || joined || login ? "password" : "";
  }

  void learn(std::string_view token) {
    if (levels_.empty() || !is_string(token)) {
      return;
    }
    Nesting& level = levels_.back();
    const std::string string = decoded(token);
    if (level.object && is_name_key(level.key)) {
      level.names.push_back(string);
    }
    if (!level.object) {
      level.words.resize(std::min(level.words.size(), std::size_t{1}));
      const char letter = password_option(string, level.words.empty() ? "" : level.words.back());
      level.letter = letter != 0 ? letter : level.letter;
      level.curl = level.curl || string == "curl" || string.ends_with("/curl");
      level.words.push_back(string);
    }
  }

  // Ends the value at the current token.
  void ends_value() {
    if (levels_.empty() || !levels_.back().object) {
      return;
    }
    Nesting& level = levels_.back();
    level.value.end = tokens_.end();
    level.value.out_end = out_.size();
    if (is_value_key(level.key)) {
      level.values.push_back(level.value);
    }
  }

  // At the end of an object such as {"value": "x", "name": "password"}, replaces its values.
  void reveal_pairs() {
    const Nesting& level = levels_.back();
    const auto name = std::find_if(level.names.begin(), level.names.end(),
                                   [](const std::string& each) { return is_secret_name(each); });
    if (name == level.names.end()) {
      return;
    }
    const std::string replaced = fmt::format("\"{}\"", kRedacted);
    for (auto each = level.values.rbegin(); each != level.values.rend(); ++each) {
      const std::size_t bytes = each->out_end - each->out_begin;
      if (out_.compare(each->out_begin, bytes, replaced) != 0 &&
          is_secret_value(*name, json_.substr(each->begin, each->end - each->begin))) {
        ++secrets_;
        out_.replace(each->out_begin, bytes, replaced);
      }
    }
  }

  std::string_view json_;
  std::string& out_;
  JsonTokens tokens_;
  std::size_t at_ = 0;
  std::int64_t secrets_ = 0;
  std::vector<Nesting> levels_;
};

}  // namespace

std::optional<std::size_t> end_of_json(std::string_view text, std::size_t at,
                                       std::size_t& examined) {
  JsonTokens tokens(text, at);
  while (tokens.next()) {
  }
  examined += tokens.end() - at;
  return tokens.done() ? std::optional(tokens.end()) : std::nullopt;
}

std::int64_t redact_json(std::string_view json, std::string& out) {
  return JsonScan(json, out).run();
}

}  // namespace trireme
