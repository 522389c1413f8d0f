#include "src/study/anonymity/anonymity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "slurm/job/host_list.h"
#include "src/base/error.h"
#include "src/study/anonymity/address_words.h"
#include "src/study/anonymity/json_strings.h"
#include "src/study/anonymity/listed_names.h"
#include "src/study/anonymity/logged_names.h"
#include "src/study/anonymity/name_words.h"
#include "src/study/anonymity/ordinary_words.h"
#include "src/study/redaction/json_redaction.h"
#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestWord = 400;  // bytes in which names and addresses are looked for

// What addresses and host names with a domain consist of.
bool is_token(char c) {
  return is_name(c) || std::string_view(".:@+%").find(c) != std::string_view::npos;
}

// Returns the place behind the JSON that begins at `at`, or `at` if there is none. examined: raised
// by the bytes that were read. Where many begin that end nowhere, the rest is taken for plain text.
std::size_t behind_json(std::string_view text, std::size_t at, std::size_t& examined) {
  if ((text[at] != '{' && text[at] != '[') || examined > 4 * text.size() + 4096) {
    return at;
  }
  return end_of_json(text, at, examined).value_or(at);
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

void Anonymity::add(const std::string& name, const char* kind) {
  const bool is_mark = lowered(name) == lowered(kRedacted);
  const bool is_name =
      std::any_of(name.begin(), name.end(),
                  [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }) &&
      !is_mark && !is_date(name);
  if (is_name && !is_ordinary_word(lowered(name))) {
    (void)names_.alias(name, kind);
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

// As in `ssh jane@n1`, the prompt [jane@n1 ~]$, and https://REDACTED@n1. Mail addresses are
// replaced as a whole.
void Anonymity::learn_login(const NameWords& words) {
  const std::string_view word = words.word();
  if (!words.rest().starts_with("@") || is_number(word)) {
    return;
  }
  const std::string_view behind = words.rest().substr(1);
  if (words.char_before() == '[' && is_date(behind)) {  // behind a node's reason
    add_user(std::string(word));
  }
  std::size_t end = 0;
  while (end < behind.size() &&
         (is_letter(behind[end]) || behind[end] == '-' || behind[end] == '.')) {
    ++end;
  }
  const std::string_view host = without_dots_behind(behind.substr(0, end));
  if (host.empty() || is_number(host.substr(0, 1))) {
    return;
  }
  const bool url = words.follows("//");
  const bool prompt = words.char_before() == '[' && host.find('.') == std::string_view::npos;
  if (url || prompt || is_login(words) || names_.is_host(host) || is_known_with_domain(host)) {
    add_user(std::string(word));
    add_host(std::string(host));
  }
}

void Anonymity::learn(std::string_view text) {
  names_.avoid(text);
  std::size_t examined = 0;
  for (std::size_t at = text.find_first_of("{["); at < text.size();
       at = text.find_first_of("{[", at)) {
    const std::size_t behind = behind_json(text, at, examined);
    const std::string_view json = text.substr(at, behind - at);
    for (const JsonString& each : strings_of_json(json)) {
      const std::string_view own = json.substr(each.begin, each.end - each.begin);
      if (own.find('\\') != std::string_view::npos) {
        learn(meaning_of_string(own));
      }
    }
    at = std::max(behind, at + 1);
  }
  learn_words(text);
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

void Anonymity::learn_words(std::string_view text) {
  constexpr std::string_view kStepDaemon = "slurmstepd-";
  for (NameWords words(text); words.next();) {
    const std::string_view word = words.word();
    if (word.size() > kLongestWord) {
      continue;
    }
    if (is_host_key(word)) {
      for (const std::string& value : words.values()) {
        add_hosts(value);
      }
    } else if (is_user_key(word)) {
      for (const std::string& value : words.values()) {
        add_user(value);
      }
    } else if (word == "name" && words.char_before() == '"' &&
               (is_host_key(words.before(1)) || names_.is_host(words.before(1)))) {
      for (const std::string& value : words.values()) {
        add_host(value);
      }
    }
    const bool counted = words.rest().starts_with("\":") && has_number(word) &&
                         (is_host_key(words.before(1)) ||
                          (is_number(words.before(1)) && names_.is_host(words.before(2))));
    if (is_host_option(words)) {
      add_hosts(words.option_value());
    } else if (is_host_list_in_log(words)) {
      add_hosts(words.own_list());
    } else if (const std::string_view joined = joined_host(words); !joined.empty()) {
      add_host(std::string(joined));
    } else if (word.starts_with(kStepDaemon)) {
      add_host(std::string(word.substr(kStepDaemon.size())));
    } else if (counted || is_host_in_log(words) || names_.in_known_domain(word) ||
               is_known_with_domain(word)) {
      add_host(std::string(word));
    }
    const bool identity = is_number(words.before(1)) && words.before(2) == "uid";
    if (identity && words.char_before() == '(') {
      add_user(std::string(word));  // as in uid=1000(jane)
    }
    learn_login(words);
    const std::string_view address = without_dots_behind(word);
    if (is_remote_address(address) && !is_version_next(words.line_before())) {
      (void)names_.alias(std::string(address), "address");
    }
  }
}

bool Anonymity::is_known_with_domain(std::string_view word) const {
  word = without_dots_behind(word);
  const std::size_t dot = word.find('.');
  // A host called "data" makes no domain of "train" in the key "data.train".
  return dot != std::string_view::npos && word.find('.', dot + 1) != std::string_view::npos &&
         names_.is_host(word.substr(0, dot)) && is_domain(word.substr(dot + 1));
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

// Returns the place of the next IPv4 address in a word that is replaced, from `at` on, or the end.
// Glued to a name, as in nccl.10.1.2.3.log, four numbers are one if the first of them is 10 or at
// least 100, which that of a version hardly is, or if they also stand alone.
Anonymity::TextPart Anonymity::next_address(std::string_view word, std::size_t at) const {
  for (; at < word.size(); ++at) {
    const bool letter = at > 0 && is_letter(word[at - 1]);
    const std::size_t end = letter ? at : end_of_ipv4(word, at);
    if (end == at || (end < word.size() && is_letter(word[end]))) {
      continue;
    }
    const std::string_view own = word.substr(at, end - at);
    const auto joins = [](char c) { return is_name(c) || c == '.'; };
    const bool glued = (at > 0 && joins(word[at - 1])) || (end < word.size() && joins(word[end]));
    const std::string_view first = own.substr(0, own.find('.'));
    const bool usual = first == "10" || first.size() == 3;
    if (is_remote_address(own) && (!glued || usual || names_.contains(own))) {
      return {at, end};
    }
  }
  return {word.size(), word.size()};
}

// Replaces known names and IPv4 addresses within a word such as "n1.cluster:4000" or "job-jane".
std::string Anonymity::word_in_its_place(std::string_view word) {
  std::string result;
  for (std::size_t at = 0; at < word.size();) {
    const TextPart address = next_address(word, at);
    result += names_.names_in_their_place(word.substr(at, address.begin - at));
    if (address.end > address.begin) {
      result += names_.alias(std::string(word.substr(address.begin, address.end - address.begin)),
                             "address");
    }
    at = address.end;
  }
  return result;
}

// Returns whether both sides of jane@n1.site.org are known, so that it is no mail address.
bool Anonymity::is_login_of_known(std::string_view word) const {
  const std::size_t at = word.find('@');
  const std::string_view host = word.substr(at + 1);
  return names_.contains(word.substr(0, at)) && names_.is_host(host.substr(0, host.find('.'))) &&
         names_.in_known_domain(host);
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
  const bool known = names_.has_host_like(front);
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

// Appends `text` from `at` to `end` with IPv4 addresses replaced, as in [10.1.2.3, 10.1.2.4].
void Anonymity::append_numbers(std::string_view text, std::size_t at, std::size_t end,
                               std::string& result) {
  const std::string_view numbers = text.substr(0, end);
  while (at < end) {
    const TextPart address = next_address(numbers, at);
    result += numbers.substr(at, address.begin - at);
    const std::string_view own = numbers.substr(address.begin, address.end - address.begin);
    const bool stays = own.empty() || is_version_next(numbers.substr(0, address.begin));
    result += stays ? std::string(own) : names_.alias(std::string(own), "address");
    at = address.end;
  }
}

// Appends the JSON in `text` from `at` to `end` with the meaning of its texts searched. Numbers
// stay, and so do keys that are no names as a whole, such as "tokens_per_s" if somebody is called
// "per".
void Anonymity::append_json(std::string_view text, std::size_t at, std::size_t end,
                            std::string& result) {
  const std::string_view json = text.substr(at, end - at);
  const std::size_t begin = at;
  for (const JsonString& each : strings_of_json(json)) {
    append_numbers(text, at, begin + each.begin, result);
    at = begin + each.end;
    const std::string_view own = json.substr(each.begin, each.end - each.begin);
    const std::string plain = meaning_of_string(own);
    const bool stays = each.is_key && names_.find(plain) == nullptr &&
                       plain.find_first_of(".:@[") == std::string::npos;
    const std::string applied = stays ? plain : apply(plain);
    result += applied == plain ? std::string(own) : json_string(applied);
  }
  append_numbers(text, at, end, result);
}

std::string Anonymity::apply(std::string_view text) {
  std::string result;
  std::size_t examined = 0;  // bytes that might have been JSON
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t behind = behind_json(text, at, examined); behind > at) {
      append_json(text, at, behind, result);
      at = behind;
      continue;
    }
    if (!is_token(text[at])) {
      result += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_token(text[end]) && end - at < kLongestWord) {
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
    const std::size_t zone = word.find('%');  // behind an address of one link: fe80::1%eth0
    const std::size_t port = is_ipv6(word.substr(0, zone)) ? zone : word.rfind(':');
    const std::string_view address = word.substr(0, port);
    if (version && is_ipv4(address)) {
      result += word;
    } else if (is_ipv6(address) || is_hardware_address(address)) {
      result += names_.alias(std::string(address), "address");
      result += word.substr(address.size());
    } else if (is_mail(word) && !word.starts_with(kRedacted) && !is_login_of_known(word)) {
      result += names_.alias(std::string(word), "mail");
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
