#include "src/study/anonymity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "slurm/job/host_list.h"
#include "src/base/error.h"
#include "src/study/name_words.h"

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

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether a line of a log names a host here: "rank 3 on n7", "rank 3 (n7)", "ON n7
// CANCELLED", "error: n7: task 3".
bool is_host_in_log(const NameWords& words) {
  const bool of_rank = is_number(words.before(1)) && lower(words.before(2)) == "rank";
  const bool on_rank =
      words.before(1) == "on" && is_number(words.before(2)) && lower(words.before(3)) == "rank";
  return on_rank || (of_rank && words.char_before() == '(') || words.before(1) == "ON" ||
         words.rest().starts_with(": task ");
}

// Returns whether the words before tell that "jane@n1.site.org" is a login, not a mail address.
bool is_login(const NameWords& words) {
  constexpr std::array<std::string_view, 6> kPrograms = {"ssh",   "scp",   "sftp",
                                                         "rsync", "sshfs", "ssh-copy-id"};
  for (const std::size_t back : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    if (std::find(kPrograms.begin(), kPrograms.end(), words.before(back)) != kPrograms.end()) {
      return true;
    }
  }
  return false;
}

// Returns whether what follows a host's name and a dot is a domain, rather than the rest of a
// file's name, such as "log".
bool is_domain(std::string_view name) {
  constexpr std::array<std::string_view, 30> kSuffixes = {
      "log",    "out",  "err",  "txt",  "csv", "json", "jsonl", "yaml", "yml",  "tar",
      "gz",     "zst",  "svg",  "html", "py",  "sh",   "job",   "h5",   "xz",   "bz2",
      "sbatch", "toml", "conf", "cc",   "h",   "png",  "bin",   "pid",  "sock", "prom"};
  const std::string last = lower(name.substr(name.rfind('.') + 1));
  return last.size() > 1 && name.find("..") == std::string_view::npos && name[0] != '.' &&
         std::none_of(last.begin(), last.end(), [](char c) { return c < 'a' || c > 'z'; }) &&
         std::find(kSuffixes.begin(), kSuffixes.end(), last) == kSuffixes.end();
}

std::string_view without_dots_behind(std::string_view word) {
  word.remove_suffix(word.size() - (word.find_last_not_of('.') + 1));
  return word;
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
  // Their case means nothing.
  const std::string own = lower(without_dots_behind(name));
  std::size_t dot = own.find('.');
  add(own.substr(0, dot), "host");
  // Also what the domain is part of, such as example.org, but not a country or the like.
  for (bool first = true; dot != std::string::npos; first = false) {
    const std::string domain = own.substr(dot + 1);
    dot = own.find('.', dot + 1);
    if (first || dot != std::string::npos) {
      add(domain, "domain");
    }
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
  for (NameWords words(text); words.next();) {
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
    } else if (is_host_in_log(words) || in_known_domain(word) || is_known_with_domain(word)) {
      add_host(std::string(word));
    }
    // As in `ssh jane@n1`; mail addresses are replaced as a whole.
    if (words.rest().starts_with("@") && !is_number(word)) {
      const std::string_view behind = words.rest().substr(1);
      std::size_t end = 0;
      while (end < behind.size() &&
             (is_letter(behind[end]) || behind[end] == '-' || behind[end] == '.')) {
        ++end;
      }
      const std::string_view host = without_dots_behind(behind.substr(0, end));
      if (!host.empty() && (host.find('.') == std::string_view::npos || is_login(words) ||
                            is_known_with_domain(host))) {
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
    const auto known = aliases_.find(lower(word.substr(dot + 1)));
    if (known != aliases_.end() && known->second.starts_with("domain-")) {
      return true;
    }
  }
  return false;
}

bool Anonymity::is_known_with_domain(std::string_view word) const {
  word = without_dots_behind(word);
  const std::size_t dot = word.find('.');
  return dot != std::string_view::npos && is_host(word.substr(0, dot)) &&
         is_domain(word.substr(dot + 1));
}

bool Anonymity::is_host(std::string_view name) const {
  const auto known = aliases_.find(lower(name));
  return known != aliases_.end() && known->second.starts_with("host-");
}

const std::string* Anonymity::find(std::string_view name) const {
  auto known = aliases_.find(std::string(name));
  if (known == aliases_.end()) {
    known = aliases_.find(lower(name));
    if (known != aliases_.end() && !known->second.starts_with("host-") &&
        !known->second.starts_with("domain-")) {
      known = aliases_.end();
    }
  }
  return known == aliases_.end() ? nullptr : &known->second;
}

// Returns the aliases of the hosts in a list such as n[01-04], or "" if it is none.
std::string Anonymity::list_in_its_place(std::string_view list) {
  constexpr std::size_t kMostInText = 4096;
  std::vector<std::string> names;
  try {
    names = expand_host_list(list);
  } catch (const ConfigError&) {  // no list of hosts
  }
  if (names.empty() || names.size() > kMostInText) {
    return "";
  }
  std::string result;
  for (const std::string& name : names) {
    add_host(name);
    result += (result.empty() ? "" : ",") + word_in_its_place(name);
  }
  return result;
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
      if (ends && find(word.substr(at, end - at)) != nullptr) {
        length = end - at;
      }
    }
    if (length > 0) {
      result += *find(word.substr(at, length));
      at += length;
    } else {
      result += word[at++];
    }
  }
  return result;
}

// Returns whether both sides of jane@n1.site.org are known, so that it is no mail address.
bool Anonymity::is_login_of_known(std::string_view word) const {
  const std::size_t at = word.find('@');
  const std::string_view host = word.substr(at + 1);
  return aliases_.contains(std::string(word.substr(0, at))) &&
         is_host(host.substr(0, host.find('.'))) && in_known_domain(host);
}

std::string Anonymity::apply(std::string_view text) {
  constexpr std::size_t kLongestName = 400;
  constexpr std::size_t kLongestList = 10'000;
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
    const bool list = at < text.size() && text[at] == '[' && tail.empty() &&
                      std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& each) {
                        return each.second.starts_with("host-") && !word.empty() &&
                               each.first.starts_with(lower(word));
                      });
    if (list) {
      std::size_t close = at;
      while (close < text.size() && (is_name(text[close]) || text[close] == '.' ||
                                     (text[close] == '[' && close - at < kLongestList))) {
        close =
            text[close] == '[' ? std::min(text.find(']', close), text.size() - 1) + 1 : close + 1;
      }
      const std::string_view whole =
          without_dots_behind(text.substr(at - word.size(), close - (at - word.size())));
      const std::string hosts = list_in_its_place(whole);
      at += hosts.empty() ? 0 : whole.size() - word.size();
      result += hosts.empty() ? "hosts" : hosts;
    } else if (is_ipv4(address) || is_ipv6(address)) {
      const bool local = address == "127.0.0.1" || address == "0.0.0.0";
      result += local ? std::string(address) : alias(std::string(address), "address");
      result += word.substr(address.size());
    } else if (is_mail(word) && !is_login_of_known(word)) {
      result += alias(std::string(word), "mail");
    } else {
      result += word_in_its_place(word);
    }
    result += tail;
  }
  return result;
}

}  // namespace trireme
