#include "src/study/anonymity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "slurm/job/host_list.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Keys, options and variables that name hosts and users, in lower case.
constexpr std::array<std::string_view, 14> kHostKeys = {
    "host",    "hosts",   "hostname", "node", "nodes",   "nodelist", "nodename",
    "suspect", "partner", "members",  "from", "exclude", "hostlist", "nodes_with_bad_links"};
constexpr std::array<std::string_view, 6> kUserKeys = {"user",     "owner",   "account",
                                                       "username", "logname", "uname"};
// The next word is a list of hosts.
constexpr std::array<std::string_view, 6> kHostOptions = {"-H", "--host",    "-host",
                                                          "-w", "--exclude", "--nodelist"};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_letter(c) || c == '_' || c == '-'; }
// What addresses and host names with a domain consist of.
bool is_token(char c) { return is_name(c) || c == '.' || c == ':' || c == '@'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

bool is_ipv4(std::string_view word) {
  int parts = 1;
  int digits = 0;
  for (const char c : word) {
    if (c == '.') {
      parts += digits > 0 ? 1 : 8;
      digits = 0;
    } else if (c < '0' || c > '9' || ++digits > 3) {
      return false;
    }
  }
  return parts == 4 && digits > 0;
}

// Also hardware addresses, such as 02:42:ac:11:00:02. A time of day has two colons.
bool is_ipv6(std::string_view word) {
  const auto colons = std::count(word.begin(), word.end(), ':');
  return (colons >= 3 || (colons == 2 && word.find("::") != std::string_view::npos)) &&
         word.find_first_not_of(':') != std::string_view::npos &&
         std::all_of(word.begin(), word.end(), [](char c) { return c == ':' || is_hex(c); });
}

bool is_mail(std::string_view word) {
  const std::size_t at = word.find('@');
  return at != std::string_view::npos && at > 0 && word.find('.', at) != std::string_view::npos &&
         word.find(':') == std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Returns whether a key or variable is one of the names, or ends in one, as SLURM_JOB_USER does.
template <std::size_t N>
bool is_key(std::string_view key, const std::array<std::string_view, N>& names) {
  const std::string own = lower(key.substr(std::min(key.find_first_not_of('-'), key.size())));
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return own.ends_with(name) && (own.size() == name.size() || own.starts_with("slurm") ||
                                   own[own.size() - name.size() - 1] == '_');
  });
}

bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Words reads the names in a text one by one, and the values behind them.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  // Moves to the next name. Returns false at the end.
  bool next() {
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = word();
    begin_ = end_;
    while (begin_ < text_.size() && !is_part(text_[begin_])) {
      ++begin_;
    }
    end_ = begin_;
    while (end_ < text_.size() && is_part(text_[end_])) {
      ++end_;
    }
    return begin_ < text_.size();
  }
  std::string_view word() const { return text_.substr(begin_, end_ - begin_); }
  // Returns the name that many names before; 1 for the previous one.
  std::string_view before(std::size_t back) const { return before_[back - 1]; }
  std::string_view rest() const { return text_.substr(end_); }
  char char_before() const { return begin_ == 0 ? '\n' : text_[begin_ - 1]; }

  // Returns the values behind the name if it is a key or a variable: one, or all of a list.
  std::vector<std::string> values() const {
    std::size_t at = end_;
    while (at < text_.size() && (text_[at] == '\\' || text_[at] == '"' || text_[at] == '\'')) {
      ++at;
    }
    const bool quoted = at > end_;
    at = text_.find_first_not_of(" \t", at);
    if (at == std::string_view::npos || (text_[at] != ':' && text_[at] != '=')) {
      return {};
    }
    // "host: unknown error" in a log is no assignment.
    const bool sure = quoted || text_[at] == '=';
    const bool entry = begins_entry();
    at = text_.find_first_not_of(" \t", at + 1);
    std::vector<std::string> found;
    if (at == std::string_view::npos) {
      return found;
    }
    const bool list = text_[at] == '[';
    for (at += list ? 1 : 0; at < text_.size();) {
      at = std::min(text_.find_first_not_of(list ? " \t\n,\\" : "\\", at), text_.size());
      if (at < text_.size() && text_[at] != ']') {
        found.push_back(value(at, list));
      }
      if (!list || at >= text_.size() || text_[at] == ']' || found.back().empty()) {
        break;
      }
    }
    const bool good = sure || list || (entry && ends_entry(at));
    return good ? found : std::vector<std::string>();
  }
  // Returns the text behind the name up to the next blank, as an option's value.
  std::string option_value() const {
    std::size_t at = std::min(text_.find_first_not_of(" =", end_), text_.size());
    return value(at, false);
  }

 private:
  static bool is_part(char c) { return is_name(c) || c == '.'; }

  bool begins_entry() const {
    std::size_t at = begin_;
    while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t' || text_[at - 1] == '-')) {
      --at;
    }
    return at == 0 || std::string_view("\n{,").find(text_[at - 1]) != std::string_view::npos;
  }

  bool ends_entry(std::size_t at) const {
    at = text_.find_first_not_of(" \t\r", at);
    return at == std::string_view::npos ||
           std::string_view("\n,}#").find(text_[at]) != std::string_view::npos;
  }

  std::string value(std::size_t& at, bool in_list) const {
    if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) {
      const std::size_t close = text_.find_first_of("\"'\n", at + 1);
      const std::size_t end = std::min(close, text_.size());
      std::string result(text_.substr(at + 1, end - at - 1));
      at = std::min(end + 1, text_.size());
      result.erase(std::min(result.find_last_not_of('\\') + 1, result.size()));
      return result;
    }
    std::size_t end = at;
    int depth = 0;
    while (end < text_.size() && !is_white(text_[end]) &&
           (is_part(text_[end]) || text_[end] == '[' || (text_[end] == ']' && depth > 0) ||
            text_[end] == ':' || (text_[end] == ',' && (!in_list || depth > 0)))) {
      depth += text_[end] == '[' ? 1 : text_[end] == ']' ? -1 : 0;
      ++end;
    }
    std::string result(text_.substr(at, end - at));
    at = end;
    result.erase(std::min(result.find_last_not_of(",:") + 1, result.size()));
    return result;
  }

  std::string_view text_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::array<std::string_view, 3> before_;
};

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether a line of a log names a host here: "rank 3 on n7", "rank 3 (n7)", "ON n7
// CANCELLED", "error: n7: task 3".
bool is_host_in_log(const Words& words) {
  const bool of_rank = is_number(words.before(1)) && lower(words.before(2)) == "rank";
  const bool on_rank =
      words.before(1) == "on" && is_number(words.before(2)) && lower(words.before(3)) == "rank";
  return on_rank || (of_rank && words.char_before() == '(') || words.before(1) == "ON" ||
         words.rest().starts_with(": task ");
}

// A name of a host has no blank or slash. Names of benchmarks and other single words are kept.
bool could_be_host(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_name(c) || c == '.'; });
}

}  // namespace

std::string Anonymity::alias(const std::string& name, const char* kind) {
  const auto [found, is_new] = aliases_.try_emplace(name);
  if (is_new) {
    found->second = fmt::format("{}-{}", kind, ++counts_[kind]);
  }
  return found->second;
}

void Anonymity::add(const std::string& name, const char* kind) {
  const bool number =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!name.empty() && !number && name != "localhost" && name != "root") {
    (void)alias(name, kind);
  }
}

void Anonymity::add_host(const std::string& name) {
  if (!could_be_host(name) || is_ipv4(name)) {
    return;
  }
  const std::size_t dot = name.find('.');
  add(name.substr(0, dot), "host");
  if (dot != std::string::npos) {
    add(name.substr(dot + 1), "domain");
  }
}

void Anonymity::add_user(const std::string& name) {
  if (could_be_host(name)) {
    add(name, "user");
  }
}

// Adds the hosts of a list such as n[1-4],login or n1:2.
void Anonymity::add_hosts(const std::string& list) {
  constexpr std::size_t kLongestList = 100'000;
  std::vector<std::string> names;
  try {
    if (list.size() <= kLongestList && list.find('[') != std::string::npos) {
      names = expand_host_list(list);
    }
  } catch (const ConfigError&) {  // no list of hosts
  }
  std::string name;
  for (const char c : names.empty() ? list + "," : std::string()) {
    if (c == ',' || c == ' ') {
      names.push_back(name.substr(0, name.find(':')));
      name.clear();
    } else {
      name += c;
    }
  }
  for (const std::string& each : names) {
    add_host(each);
  }
}

void Anonymity::learn(std::string_view text) {
  constexpr std::string_view kStepDaemon = "slurmstepd-";
  for (Words words(text); words.next();) {
    const std::string_view word = words.word();
    if (is_key(word, kHostKeys)) {
      for (const std::string& value : words.values()) {
        add_hosts(value);
      }
    } else if (is_key(word, kUserKeys)) {
      for (const std::string& value : words.values()) {
        add_user(value);
      }
    } else if (word == "name" && words.before(1) == "host" && words.char_before() == '"') {
      for (const std::string& value : words.values()) {
        add_host(value);
      }
    }
    if (std::find(kHostOptions.begin(), kHostOptions.end(), word) != kHostOptions.end()) {
      add_hosts(words.option_value());
    } else if (word.starts_with(kStepDaemon)) {
      add_host(std::string(word.substr(kStepDaemon.size())));
    } else if (is_host_in_log(words) || in_known_domain(word)) {
      add_host(std::string(word));
    }
    // As in `ssh jane@n1`; mail addresses are replaced as a whole.
    if (words.rest().starts_with("@") && !is_number(word)) {
      const std::string_view behind = words.rest().substr(1);
      const std::string_view host = behind.substr(
          0, std::min(behind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
                      behind.size()));
      if (!host.empty() && (behind.size() == host.size() || behind[host.size()] != '.')) {
        add_user(std::string(word));
        add_host(std::string(host));
      }
    }
  }
  for (const std::string_view home : {"/home/", "/users/", "/Users/"}) {
    for (std::size_t at = text.find(home); at != std::string_view::npos;
         at = text.find(home, at + 1)) {
      const std::size_t begin = at + home.size();
      std::size_t end = begin;
      while (end < text.size() && (is_name(text[end]) || text[end] == '.')) {
        ++end;
      }
      add_user(std::string(text.substr(begin, end - begin)));
    }
  }
}

bool Anonymity::in_known_domain(std::string_view word) const {
  for (std::size_t dot = word.find('.'); dot != std::string_view::npos;
       dot = word.find('.', dot + 1)) {
    const auto known = aliases_.find(std::string(word.substr(dot + 1)));
    if (known != aliases_.end() && known->second.starts_with("domain-")) {
      return true;
    }
  }
  return false;
}

// Replaces known names within a word such as "n1.cluster:4000" or "job-jane".
std::string Anonymity::word_in_its_place(std::string_view word) {
  std::string result;
  for (std::size_t at = 0; at < word.size();) {
    // The longest known name that begins here and ends at the end of a name.
    std::size_t length = 0;
    const bool begins = at == 0 || !is_letter(word[at - 1]);
    for (std::size_t end = word.size(); begins && end > at && length == 0; --end) {
      const bool ends = end == word.size() || !is_letter(word[end]);
      if (ends && aliases_.contains(std::string(word.substr(at, end - at)))) {
        length = end - at;
      }
    }
    if (length > 0) {
      result += aliases_.at(std::string(word.substr(at, length)));
      at += length;
    } else {
      result += word[at++];
    }
  }
  return result;
}

std::string Anonymity::apply(std::string_view text) {
  constexpr std::size_t kLongestName = 400;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_token(text[at])) {
      result += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_token(text[end]) && end - at < kLongestName) {
      ++end;
    }
    std::string_view word = text.substr(at, end - at);
    at = end;
    // Punctuation at the end belongs to the sentence.
    const std::size_t last = word.find_last_not_of(".:@-");
    const std::string_view tail = word.substr(last == std::string_view::npos ? 0 : last + 1);
    word.remove_suffix(tail.size());
    const std::size_t port = is_ipv6(word) ? std::string_view::npos : word.rfind(':');
    const std::string_view address = word.substr(0, port);
    const bool list =
        at < text.size() && text[at] == '[' && tail.empty() &&
        std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& each) {
          return each.second.starts_with("host-") && !word.empty() && each.first.starts_with(word);
        });
    if (list) {
      result += "hosts";
    } else if (is_ipv4(address) || is_ipv6(address)) {
      const bool local = address == "127.0.0.1" || address == "0.0.0.0";
      result += local ? std::string(address) : alias(std::string(address), "address");
      result += word.substr(address.size());
    } else if (is_mail(word)) {
      result += alias(std::string(word), "mail");
    } else {
      result += word_in_its_place(word);
    }
    result += tail;
  }
  return result;
}

}  // namespace trireme
