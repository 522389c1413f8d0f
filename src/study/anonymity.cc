#include "src/study/anonymity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "slurm/job/host_list.h"
#include "src/base/error.h"
#include "src/study/address_words.h"
#include "src/study/listed_names.h"
#include "src/study/logged_names.h"
#include "src/study/name_words.h"
#include "src/study/redaction.h"

namespace trireme {
namespace {

// What addresses and host names with a domain consist of.
bool is_token(char c) {
  return is_name(c) || std::string_view(".:@+%").find(c) != std::string_view::npos;
}

// Returns whether a word begins like 2026-11-29, as in Slurm's [root@2026-11-29T10:00:00].
bool is_date(std::string_view word) {
  constexpr std::string_view kForm = "0000-00-00";
  return word.size() >= kForm.size() &&
         std::equal(kForm.begin(), kForm.end(), word.begin(), [](char form, char c) {
           return form == '0' ? c >= '0' && c <= '9' : c == form;
         });
}

// Returns whether what follows a host's name and a dot is a domain, rather than the rest of a
// file's name, such as "log".
bool is_domain(std::string_view name) {
  constexpr std::array<std::string_view, 30> kSuffixes = {
      "log",    "out",  "err",  "txt",  "csv", "json", "jsonl", "yaml", "yml",  "tar",
      "gz",     "zst",  "svg",  "html", "py",  "sh",   "job",   "h5",   "xz",   "bz2",
      "sbatch", "toml", "conf", "cc",   "h",   "png",  "bin",   "pid",  "sock", "prom"};
  const std::string last = lowered(name.substr(name.rfind('.') + 1));
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
  while (is_new && (found->second.empty() || taken_.contains(found->second))) {
    found->second = fmt::format("{}-{}", kind, ++counts_[kind]);
  }
  return found->second;
}

void Anonymity::add(const std::string& name, const char* kind) {
  const bool is_mark = lowered(name) == lowered(kRedacted);
  const bool is_name = !name.empty() && !is_number(name) && !is_mark && !is_date(name);
  if (is_name && !is_ordinary_word(lowered(name))) {
    (void)alias(name, kind);
  }
}

void Anonymity::avoid(std::string_view text) {
  for (const std::string_view kind : {"host-", "user-", "domain-", "address-", "mail-"}) {
    for (std::size_t at = 0; at + kind.size() < text.size(); ++at) {
      at = std::search(
               text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), kind.begin(), kind.end(),
               [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; }) -
           text.begin();
      const std::size_t digits = std::min(at + kind.size(), text.size());
      const std::size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
      if (end > digits && end < digits + 10) {
        taken_.insert(std::string(kind) + std::string(text.substr(digits, end - digits)));
      }
    }
  }
}

void Anonymity::add_host(const std::string& name) {
  if (!could_be_host(name) || is_ipv4(name)) {
    return;
  }
  // Their case means nothing.
  const std::string own = lowered(without_dots_behind(name));
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

// As in `ssh jane@n1`; mail addresses are replaced as a whole.
void Anonymity::learn_login(const NameWords& words) {
  const std::string_view word = words.word();
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

void Anonymity::learn(std::string_view text) {
  constexpr std::string_view kStepDaemon = "slurmstepd-";
  avoid(text);
  for (NameWords words(text); words.next();) {
    const std::string_view word = words.word();
    if (is_host_key(word)) {
      for (const std::string& value : words.values()) {
        add_hosts(value);
      }
    } else if (is_user_key(word)) {
      for (const std::string& value : words.values()) {
        add_user(value);
      }
    } else if (word == "name" && words.char_before() == '"' &&
               (is_host_key(words.before(1)) || is_host(words.before(1)))) {
      for (const std::string& value : words.values()) {
        add_host(value);
      }
    }
    const bool counted =
        words.rest().starts_with("\":") && has_number(word) &&
        (is_host_key(words.before(1)) || (is_number(words.before(1)) && is_host(words.before(2))));
    if (is_host_option(words)) {
      add_hosts(words.option_value());
    } else if (is_host_list_in_log(words)) {
      add_hosts(words.own_list());
    } else if (const std::string_view joined = joined_host(words); !joined.empty()) {
      add_host(std::string(joined));
    } else if (word.starts_with(kStepDaemon)) {
      add_host(std::string(word.substr(kStepDaemon.size())));
    } else if (counted || is_host_in_log(words) || in_known_domain(word) ||
               is_known_with_domain(word)) {
      add_host(std::string(word));
    }
    const bool identity = is_number(words.before(1)) && words.before(2) == "uid";
    if (identity && words.char_before() == '(') {
      add_user(std::string(word));  // as in uid=1000(jane)
    }
    learn_login(words);
  }
  const ListedNames listed = listed_names(text);
  for (const std::string& hosts : listed.hosts) {
    add_hosts(hosts);
  }
  for (const std::string& user : listed.users) {
    add_user(user);
  }
  for (const std::string& user : users_of_homes(text)) {
    add_user(user);
  }
}

bool Anonymity::in_known_domain(std::string_view word) const {
  for (std::size_t dot = word.find('.'); dot != std::string_view::npos;
       dot = word.find('.', dot + 1)) {
    const auto known = aliases_.find(lowered(word.substr(dot + 1)));
    if (known != aliases_.end() && known->second.starts_with("domain-")) {
      return true;
    }
  }
  return false;
}

bool Anonymity::is_known_with_domain(std::string_view word) const {
  word = without_dots_behind(word);
  const std::size_t dot = word.find('.');
  // A host called "data" makes no domain of "train" in the key "data.train".
  return dot != std::string_view::npos && word.find('.', dot + 1) != std::string_view::npos &&
         is_host(word.substr(0, dot)) && is_domain(word.substr(dot + 1));
}

bool Anonymity::is_host(std::string_view name) const {
  const auto known = aliases_.find(lowered(name));
  return known != aliases_.end() && known->second.starts_with("host-");
}

const std::string* Anonymity::find(std::string_view name) const {
  auto known = aliases_.find(std::string(name));
  if (known == aliases_.end()) {
    known = aliases_.find(lowered(name));
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
  if (word.starts_with("-w") && is_host(word.substr(2))) {  // as in srun -wn1
    result = word.substr(0, 2);
    word.remove_prefix(2);
  }
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

// Appends the aliases of a list of known hosts such as gpu-[01-04], whose first bracket is at
// `bracket`. begin: of the word before the bracket. Returns the place behind what was appended, or
// `begin` if there is no such list.
std::size_t Anonymity::append_list(std::string_view text, std::size_t begin, std::size_t bracket,
                                   std::string& result) {
  constexpr std::size_t kLongestList = 32'768;
  if (bracket >= text.size() || text[bracket] != '[') {
    return begin;
  }
  const std::string_view word = text.substr(begin, bracket - begin);
  const std::size_t before = word.find_last_of(":@") + 1;  // npos + 1 is 0
  const std::string front = lowered(word.substr(before));
  const std::size_t dot = front.find('.');
  const bool known = std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& each) {
    return each.second.starts_with("host-") && !front.empty() &&
           (dot == std::string::npos ? each.first.starts_with(front)
                                     : each.first == front.substr(0, dot));
  });
  if (!known) {
    return begin;
  }
  const std::string_view near = text.substr(0, bracket + kLongestList);
  std::size_t close = bracket;
  while (close < near.size() &&
         (is_name(near[close]) || near[close] == '.' || near[close] == '[')) {
    close = near[close] == '[' ? std::min(near.find(']', close), near.size() - 1) + 1 : close + 1;
  }
  const std::string_view list =
      without_dots_behind(text.substr(begin + before, close - (begin + before)));
  const std::string hosts = list_in_its_place(list);
  result += apply(word.substr(0, before)) + (hosts.empty() ? "hosts" : hosts);
  return hosts.empty() ? bracket : begin + before + list.size();
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
    if (const std::size_t behind = append_list(text, at, end, result); behind > at) {
      at = behind;
      continue;
    }
    std::string_view word = text.substr(at, end - at);
    const bool version = is_version_next(text.substr(0, at));
    at = end;
    // Punctuation at the end belongs to the sentence.
    const std::size_t last = word.find_last_not_of(".:@-");
    const std::string_view tail = word.substr(last == std::string_view::npos ? 0 : last + 1);
    word.remove_suffix(tail.size());
    const std::size_t port = is_ipv6(word) ? std::string_view::npos : word.rfind(':');
    const std::string_view address = word.substr(0, port);
    if (is_ipv4(address) || is_ipv6(address) || is_hardware_address(address)) {
      const bool local = version || address == "127.0.0.1" || address == "0.0.0.0";
      result += local ? std::string(address) : alias(std::string(address), "address");
      result += word.substr(address.size());
    } else if (is_mail(word) && !is_login_of_known(word)) {
      result += alias(std::string(word), "mail");
    } else if (const std::size_t behind = address_behind_colon(word); behind > 0) {
      result += word_in_its_place(word.substr(0, behind)) + apply(word.substr(behind));
    } else {
      result += word_in_its_place(word);
    }
    result += tail;
  }
  return result;
}

}  // namespace trireme
