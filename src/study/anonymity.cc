#include "src/study/anonymity.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

namespace trireme {
namespace {

constexpr std::array<std::string_view, 9> kHostKeys = {
    "\"host\":", "\"hostname\":", "\"node\":", "\"nodes\":",     "\"hosts\":",
    "\"name\":", "\"members\":",  "\"from\":", "\"batch_host\":"};
constexpr std::array<std::string_view, 3> kUserKeys = {"\"user\":", "\"owner\":", "\"account\":"};

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
  return colons >= 3 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c == ':' || is_hex(c); });
}

bool is_mail(std::string_view word) {
  const std::size_t at = word.find('@');
  return at != std::string_view::npos && at > 0 && word.find('.', at) != std::string_view::npos &&
         word.find(':') == std::string_view::npos;
}

// Calls use() with each text in quotes behind a key: one, or all of a list.
template <class Use>
void for_each_value(std::string_view text, std::string_view key, const Use& use) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at)) {
    at += key.size();
    const bool list = text.substr(at).starts_with("[") || text.substr(at).starts_with(" [");
    do {
      const std::size_t open = text.find_first_not_of(" [,\n\t", at);
      if (open == std::string_view::npos || text[open] != '"') {
        break;
      }
      const std::size_t close = text.find('"', open + 1);
      if (close == std::string_view::npos) {
        break;
      }
      use(std::string(text.substr(open + 1, close - open - 1)));
      at = close + 1;
    } while (list && at < text.size() && text[at] != ']');
  }
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

void Anonymity::learn(std::string_view text) {
  for (const std::string_view key : kHostKeys) {
    if (key == "\"name\":") {  // only that of the object "host"
      for (std::size_t at = text.find("\"host\":"); at != std::string_view::npos;
           at = text.find("\"host\":", at + 1)) {
        const std::size_t open = text.find_first_not_of(" \n\t", at + 7);
        if (open != std::string_view::npos && text[open] == '{') {
          bool first = true;
          for_each_value(text.substr(open, 200), key, [&](const std::string& name) {
            if (first) {
              add_host(name);
            }
            first = false;
          });
        }
      }
      continue;
    }
    for_each_value(text, key, [&](const std::string& name) { add_host(name); });
  }
  for (const std::string_view key : kUserKeys) {
    for_each_value(text, key, [&](const std::string& name) { add_user(name); });
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
