#include "src/study/anonymity/pseudonyms.h"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "src/study/anonymity/name_words.h"

namespace trireme {
namespace {

// Returns whether a word is an option of one letter with a number, as in "srun -n1".
bool is_numbered_option(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && is_letter(word[1]) &&
         word.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

}  // namespace

std::string Pseudonyms::alias(const std::string& name, const char* kind) {
  const auto [found, is_new] = aliases_.try_emplace(name);
  longest_ = std::max(longest_, name.size());
  while (is_new && (found->second.empty() || taken_.contains(found->second))) {
    found->second = fmt::format("{}-{}", kind, ++counts_[kind]);
  }
  return found->second;
}

void Pseudonyms::avoid(std::string_view text) {
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

bool Pseudonyms::in_known_domain(std::string_view word) const {
  for (std::size_t dot = word.find('.'); dot != std::string_view::npos;
       dot = word.find('.', dot + 1)) {
    const auto known = aliases_.find(lowered(word.substr(dot + 1)));
    if (known != aliases_.end() && known->second.starts_with("domain-")) {
      return true;
    }
  }
  return false;
}

bool Pseudonyms::is_host(std::string_view name) const {
  const auto known = aliases_.find(lowered(name));
  return known != aliases_.end() && known->second.starts_with("host-");
}

const std::string* Pseudonyms::find(std::string_view name) const {
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

std::string Pseudonyms::names_in_their_place(std::string_view word) const {
  std::string result;
  if (word.starts_with("-w") && is_host(word.substr(2))) {  // as in srun -wn1
    result = word.substr(0, 2);
    word.remove_prefix(2);
  }
  const bool option = is_numbered_option(word);
  for (std::size_t at = 0; at < word.size() && !option;) {
    // The longest known name that begins here and ends at the end of a name.
    std::size_t length = 0;
    const bool begins = at == 0 || !is_letter(word[at - 1]);
    for (std::size_t end = std::min(word.size(), at + longest_); begins && end > at && length == 0;
         --end) {
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
  return option ? result + std::string(word) : result;
}

bool Pseudonyms::has_host_like(const std::string& front) const {
  const std::size_t dot = front.find('.');
  return std::any_of(aliases_.begin(), aliases_.end(), [&](const auto& each) {
    return each.second.starts_with("host-") && !front.empty() &&
           (dot == std::string::npos ? each.first.starts_with(front)
                                     : each.first == front.substr(0, dot));
  });
}

bool Pseudonyms::contains(std::string_view name) const {
  return aliases_.contains(std::string(name));
}

}  // namespace trireme
