#include "src/study/anonymity/address_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "src/study/anonymity/name_words.h"

namespace trireme {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::size_t end_of_ipv4(std::string_view text, std::size_t at) {
  if (at > 0 &&
      (is_digit(text[at - 1]) || (text[at - 1] == '.' && at > 1 && is_digit(text[at - 2])))) {
    return at;  // within a longer number, such as 1.10.1.2.3
  }
  std::size_t end = at;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (end >= text.size() || text[end++] != '.')) {
      return at;
    }
    const std::size_t begin = end;
    int value = 0;
    while (end < text.size() && is_digit(text[end]) && end - begin < 4) {
      value = 10 * value + (text[end++] - '0');
    }
    if (end == begin || value > 255 || end - begin > 3) {
      return at;
    }
  }
  const std::string_view rest = text.substr(end);
  const bool longer = rest.size() > 1 && rest[0] == '.' && is_digit(rest[1]);
  return longer ? at : end;
}

bool is_ipv4(std::string_view word) { return !word.empty() && end_of_ipv4(word, 0) == word.size(); }

bool is_remote_address(std::string_view word) {
  return is_ipv4(word) && word != "127.0.0.1" && word != "0.0.0.0";
}

bool is_date(std::string_view word) {
  constexpr std::string_view kForm = "0000-00-00";
  return word.size() >= kForm.size() &&
         std::equal(kForm.begin(), kForm.end(), word.begin(), [](char form, char c) {
           return form == '0' ? c >= '0' && c <= '9' : c == form;
         });
}

bool is_ipv6(std::string_view word) {
  constexpr std::size_t kGroup = 4;           // digits of a group that is written in full
  constexpr std::string_view kUsed = "23fF";  // first digits of addresses that are given out
  std::size_t longest = 0;
  std::size_t shortest = word.size();
  for (std::size_t at = 0; at <= word.size();) {
    const std::size_t end = std::min(word.find(':', at), word.size());
    longest = std::max(longest, end - at);
    shortest = std::min(shortest, end - at);
    at = end + 1;
  }
  const bool hex =
      std::all_of(word.begin(), word.end(), [](char c) { return c == ':' || is_hex(c); });
  const auto colons = std::count(word.begin(), word.end(), ':');
  if (!hex || longest > kGroup || colons == 0) {
    return false;
  }
  if ((colons == 5 || colons == 19) && longest == 2 && shortest == 2) {
    return true;  // the bytes of a hardware address
  }
  // Neither x[0::2] nor a::b nor 0:1:2:3:4:5:6:7 is one.
  const std::size_t gap = word.find("::");
  const bool begins = word.find(':') == kGroup && kUsed.find(word[0]) != std::string_view::npos;
  const bool whole = gap == std::string_view::npos
                         ? colons == 7
                         : colons <= 7 && word.find("::", gap + 1) == std::string_view::npos;
  return begins && whole;
}

bool is_hardware_address(std::string_view word) {
  constexpr std::size_t kBytes = 6;
  if (word.size() != 3 * kBytes - 1) {
    return false;
  }
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (at % 3 == 2 ? word[at] != '-' : !is_hex(word[at])) {
      return false;
    }
  }
  // Without a letter, it may be a time, such as 26-11-29-10-00-05.
  return word.find_first_of("abcdefABCDEF") != std::string_view::npos;
}

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

bool is_version_next(std::string_view before) {
  constexpr std::array<std::string_view, 17> kWords = {
      "version", "driver", "release", "firmware", "nccl",  "cuda",  "cudnn", "cublas",   "v",
      "toolkit", "ucx",    "pmix",    "tensorrt", "mofed", "vbios", "so",    "libfabric"};
  constexpr std::size_t kNear = 24;
  std::string near(before.substr(before.size() - std::min(before.size(), kNear)));
  const bool listed = near.ends_with('[');  // where addresses are more usual than versions
  near.erase(near.find_last_not_of(listed ? " :=\"'[" : " :=\"'") + 1);
  std::transform(near.begin(), near.end(), near.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  near.erase(0, near.find_last_not_of("abcdefghijklmnopqrstuvwxyz") + 1);
  return near.ends_with("version") ||
         (!listed && std::find(kWords.begin(), kWords.end(), near) != kWords.end());
}

// As in jane@site.org, but not in gcc@12.2.0, and not in //REDACTED@host.
bool is_mail(std::string_view word) {
  const std::size_t at = word.find('@');
  const std::size_t dot = word.rfind('.');
  if (at == std::string_view::npos || at == 0 || dot == std::string_view::npos || dot < at ||
      word.find_first_of(":@", at + 1) != std::string_view::npos || word.size() < dot + 3) {
    return false;
  }
  const std::string_view last = word.substr(dot + 1);
  return word.find(':') == std::string_view::npos &&
         std::all_of(last.begin(), last.end(),
                     [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
}

std::size_t address_behind_colon(std::string_view word) {
  for (std::size_t at = word.find(':'); at != std::string_view::npos; at = word.find(':', at + 1)) {
    const std::string_view behind = word.substr(at + 1);
    const std::string_view address = behind.substr(0, behind.find(':'));
    if (is_ipv4(address) || is_ipv6(behind) || is_hardware_address(behind) || is_mail(behind)) {
      return at + 1;
    }
  }
  return 0;
}

}  // namespace trireme
