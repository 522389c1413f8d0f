#include "slurm/job/host_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
// Longest number within brackets; a longer one would not fit into a host name.
constexpr std::size_t kMostDigits = 12;
// Limits the brackets of one name, since "[1-2]" repeated a thousand times would explode.
constexpr int kMostBrackets = 8;
constexpr std::size_t kMostNameBytes = 255;  // RFC 1035, 2.3.4
constexpr std::size_t kShownBytes = 60;

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.' || c == ':';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A parser that reads the text once from left to right; error messages name the byte `at_`.
class Expansion {
 public:
  explicit Expansion(std::string_view text) : text_(text) {}

  std::vector<std::string> run() {
    while (true) {
      one_name();
      if (at_ == text_.size()) {
        return std::move(hosts_);
      }
      ++at_;  // skip the comma: one_name() stops only at a comma or the end
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    std::string shown(text_.substr(0, kShownBytes));
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    throw ConfigError(fmt::format("'{}{}' is not a host list: byte {}: {}", shown,
                                  text_.size() > kShownBytes ? "..." : "", at_, why));
  }

  bool ends(char c) const { return at_ < text_.size() && text_[at_] == c; }

  // Parses one name with its brackets, up to the next comma or the end.
  void one_name() {
    std::vector<std::string> names = {""};
    int brackets = 0;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (text_[at_] == '[') {
        if (++brackets > kMostBrackets) {
          refuse(fmt::format("more than {} brackets in one name", kMostBrackets));
        }
        names = combined(names, numbers());
      } else if (is_plain(text_[at_])) {
        const std::size_t from = at_;
        while (at_ < text_.size() && is_plain(text_[at_])) {
          ++at_;
        }
        append(names, text_.substr(from, at_ - from));
      } else {
        refuse("this character cannot be part of a host name");
      }
    }
    if (names.front().empty()) {
      refuse("a host name is empty");
    }
    check_count(hosts_.size() + names.size());
    hosts_.insert(hosts_.end(), names.begin(), names.end());
  }

  void append(std::vector<std::string>& names, std::string_view end) const {
    if (names.front().size() + end.size() > kMostNameBytes) {
      refuse(fmt::format("a host name is longer than {} bytes", kMostNameBytes));
    }
    for (std::string& name : names) {
      name += end;
    }
  }

  std::vector<std::string> combined(const std::vector<std::string>& fronts,
                                    const std::vector<std::string>& ends) const {
    check_count(fronts.size() * ends.size());
    std::vector<std::string> all;
    all.reserve(fronts.size() * ends.size());
    for (const std::string& front : fronts) {
      for (const std::string& end : ends) {
        all.push_back(front + end);
      }
    }
    return all;
  }

  void check_count(std::size_t count) const {
    if (count > kMostHosts) {
      refuse(fmt::format("more than {} hosts", kMostHosts));
    }
  }

  // Parses a bracket such as "[1-3,7]", including both brackets.
  std::vector<std::string> numbers() {
    std::vector<std::string> all;
    do {
      ++at_;  // skip the bracket or comma
      range(all);
    } while (ends(','));
    if (!ends(']')) {
      refuse("expected a digit, '-', ',' or ']'");
    }
    ++at_;
    return all;
  }

  void range(std::vector<std::string>& all) {
    const std::string_view low = digits();
    if (!ends('-')) {
      all.emplace_back(low);
      check_count(all.size());
      return;
    }
    ++at_;
    const std::string_view high = digits();
    const std::uint64_t from = number(low);
    const std::uint64_t to = number(high);
    if (to < from) {
      refuse(fmt::format("the range {}-{} is descending", low, high));
    }
    check_count(all.size() + (to - from) + 1);
    for (std::uint64_t i = from; i <= to; ++i) {
      all.push_back(fmt::format("{:0{}}", i, low.size()));
    }
  }

  std::string_view digits() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    if (at_ == from || at_ - from > kMostDigits) {
      refuse(fmt::format("expected a number of 1 to {} digits", kMostDigits));
    }
    return text_.substr(from, at_ - from);
  }

  static std::uint64_t number(std::string_view digits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> hosts_;
};

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  if (text.size() > kMostBytes) {
    throw ConfigError(
        fmt::format("a host list of {} bytes is too long: at most {} bytes are allowed",
                    text.size(), kMostBytes));
  }
  return Expansion(text).run();
}

}  // namespace trireme
