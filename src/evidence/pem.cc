#include "src/evidence/pem.h"

#include "src/base/base64.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kLineDigits = 64;
constexpr std::size_t kMostBlockDigits = 100000;

}  // namespace

std::string begin_line(std::string_view label) { return fmt::format("-----BEGIN {}-----", label); }

std::string pem(std::string_view label, std::string_view contents) {
  std::string text = begin_line(label) + "\n";
  const std::string digits = to_base64(contents);
  for (std::size_t at = 0; at < digits.size(); at += kLineDigits) {
    text += digits.substr(at, kLineDigits) + "\n";
  }
  return text + fmt::format("-----END {}-----\n", label);
}

std::optional<std::string> PemReader::line() {
  std::string text;
  if (!std::getline(lines_, text)) {
    return std::nullopt;
  }
  ++number_;
  text.erase(text.find_last_not_of(" \t\r") + 1);
  return text;
}

std::string PemReader::contents(std::string_view label) {
  const int begin = number_;
  std::string digits;
  for (std::optional<std::string> next = line();; next = line()) {
    if (!next || digits.size() > kMostBlockDigits) {
      refuse(fmt::format("the block that begins at line {} has no end", begin));
    }
    if (*next == fmt::format("-----END {}-----", label)) {
      break;
    }
    digits += *next;
  }
  try {
    return from_base64(digits);
  } catch (const DataError& error) {
    refuse(error.what());
  }
}

void PemReader::refuse(const std::string& what) const {
  throw DataError(fmt::format("{}:{}: {}", origin_, number_, what));
}

}  // namespace trireme
