#include "src/study/redaction/hidden_texts.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the first three bytes as a number.
std::uint32_t first_bytes(std::string_view text) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < HiddenTexts::kLeastBytes; ++i) {
    number = number << 8 | static_cast<unsigned char>(small_letter(text[i]));
  }
  return number;
}

bool begins_with(std::string_view text, std::string_view small) {
  return text.size() >= small.size() &&
         std::equal(small.begin(), small.end(), text.begin(),
                    [](char one, char other) { return one == small_letter(other); });
}

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  return begin == line.npos ? std::string_view()
                            : line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

HiddenTexts::HiddenTexts(std::string_view list) {
  std::size_t count = 0;
  for (std::size_t number = 1; !list.empty(); ++number) {
    const std::size_t end = std::min(list.find('\n'), list.size());
    const std::string_view text = without_blanks(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (text.empty()) {
      continue;
    }
    if (text.size() < kLeastBytes || text.size() > kMostBytes) {
      throw DataError(
          fmt::format("line {} has {} bytes: give {} to {}, since shorter texts stand "
                      "in many words",
                      number, text.size(), kLeastBytes, kMostBytes));
    }
    if (++count > kMostTexts) {
      throw DataError(fmt::format("there are more than {} lines", kMostTexts));
    }
    add(text);
  }
  if (count == 0) {
    throw DataError("no line holds a text");
  }
  for (auto& [begin, texts] : texts_) {
    std::sort(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  }
}

void HiddenTexts::add(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  for (const std::string& form : {std::string(text), quoted.substr(1, quoted.size() - 2)}) {
    if (form.size() >= kLeastBytes) {
      std::string& small = texts_[first_bytes(form)].emplace_back(form);
      std::transform(small.begin(), small.end(), small.begin(), small_letter);
    }
  }
}

Redacted HiddenTexts::apply(std::string_view text) const {
  if (texts_.empty()) {
    return {std::string(text), 0};
  }
  Redacted result;
  std::size_t copied = 0;
  for (std::size_t at = 0; at + kLeastBytes <= text.size();) {
    const auto texts = texts_.find(first_bytes(text.substr(at)));
    const std::string* found = nullptr;
    if (texts != texts_.end()) {
      const auto one =
          std::find_if(texts->second.begin(), texts->second.end(),
                       [&](const std::string& each) { return begins_with(text.substr(at), each); });
      found = one == texts->second.end() ? nullptr : &*one;
    }
    if (found == nullptr) {
      ++at;
      continue;
    }
    result.text += text.substr(copied, at - copied);
    result.text += kRedacted;
    ++result.secrets;
    at += found->size();
    copied = at;
  }
  result.text += text.substr(copied);
  return result;
}

}  // namespace trireme
