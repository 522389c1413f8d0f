#include "io/quality/text_quality.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/tokens/unicode.h"

namespace trireme {
namespace {

template <class Counts>
void add_counts(Counts& to, const Counts& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to.at(i) += from.at(i);
  }
}

}  // namespace

TextQuality& TextQuality::operator+=(const TextQuality& other) {
  bytes += other.bytes;
  characters += other.characters;
  tokens += other.tokens;
  not_utf8 += other.not_utf8;
  add_counts(letters, other.letters);
  add_counts(documents, other.documents);
  add_counts(patterns, other.patterns);
  add_counts(documents_with, other.documents_with);
  return *this;
}

std::string TextQuality::to_text() const {
  return nlohmann::json{{"bytes", bytes.numbers()},   {"characters", characters.numbers()},
                        {"tokens", tokens.numbers()}, {"not_utf8", not_utf8},
                        {"letters", letters},         {"documents", documents},
                        {"patterns", patterns},       {"documents_with", documents_with}}
      .dump();
}

TextQuality TextQuality::from_text(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  const auto lengths = [&](const char* name) {
    return LengthCounts::from_numbers(json.at(name).get<std::vector<std::int64_t>>());
  };
  TextQuality quality;
  quality.bytes = lengths("bytes");
  quality.characters = lengths("characters");
  quality.tokens = lengths("tokens");
  quality.not_utf8 = json.at("not_utf8").get<std::int64_t>();
  json.at("letters").get_to(quality.letters);
  json.at("documents").get_to(quality.documents);
  json.at("patterns").get_to(quality.patterns);
  json.at("documents_with").get_to(quality.documents_with);
  return quality;
}

void QualityCounter::begin() {
  bytes_ = 0;
  characters_ = 0;
  is_utf8_ = true;
  letters_ = {};
  patterns_ = {};
}

void QualityCounter::take(std::string_view part) {
  bytes_ += std::ssize(part);
  add_counts(patterns_, count_personal_patterns(part));
  std::string replaced;
  std::string_view text = part;
  if (!is_utf8(part)) {
    is_utf8_ = false;
    replaced = with_replacements(part);
    text = replaced;
  }
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_character(text, at);
    ++characters_;
    if ((character_class(code) & (kLetter | kCombining)) != 0) {
      ++letters_.at(script_number(code));
    }
  }
}

void QualityCounter::end() {
  to_.bytes.add(bytes_);
  to_.characters.add(characters_);
  to_.not_utf8 += is_utf8_ ? 0 : 1;
  add_counts(to_.letters, letters_);
  const auto most = std::ranges::max_element(letters_);
  if (*most > 0) {
    ++to_.documents.at(static_cast<std::size_t>(most - letters_.begin()));
  }
  add_counts(to_.patterns, patterns_);
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    to_.documents_with.at(i) += patterns_.at(i) > 0 ? 1 : 0;
  }
}

}  // namespace trireme
