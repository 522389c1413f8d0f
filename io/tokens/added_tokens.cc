#include "io/tokens/added_tokens.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/tokens/text_step.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostAddedId = (std::int64_t{1} << 24) - 1;

// Returns where the character before byte `at` > 0 starts.
std::size_t previous_character(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is_word_at(std::string_view text, std::size_t at) {
  return (character_class(next_character(text, at)) & kWord) != 0;
}

std::size_t without_spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t start = previous_character(text, at);
    std::size_t end = start;
    if ((character_class(next_character(text, end)) & kSpace) == 0) {
      break;
    }
    at = start;
  }
  return at;
}

std::size_t without_spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t end = at;
    if ((character_class(next_character(text, end)) & kSpace) == 0) {
      break;
    }
    at = end;
  }
  return at;
}

AddedToken read_token(const nlohmann::json& value) {
  check_fields(value, "an added token",
               {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = static_cast<std::int32_t>(count_field(value, "id", 0, kMostAddedId));
  token.content = text_field(value, "content");
  token.single_word = flag_or(value, "single_word", false);
  token.lstrip = flag_or(value, "lstrip", false);
  token.rstrip = flag_or(value, "rstrip", false);
  token.special = flag_or(value, "special", false);
  token.normalized = flag_or(value, "normalized", !token.special);
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const nlohmann::json& list, const BpeModel& model,
                         const TextNormalizer& normalizer) {
  // Hugging Face's tokenizers give a token that is not in the vocabulary the next free id, whatever
  // the file says.
  auto next = static_cast<std::int64_t>(model.size());
  for (const nlohmann::json& value : list) {
    AddedToken token = read_token(value);
    const auto known = model.id_of(token.content);
    const auto at = static_cast<std::size_t>(token.id);
    const bool taken = at < model.tokens().size() && model.tokens()[at];
    if (token.content.empty() || (known && *known != token.id) || (!known && taken) ||
        !by_id_.emplace(token.id, all_.size()).second) {
      throw DataError(
          fmt::format("the added token '{}' has the id {}, which contradicts the vocabulary",
                      printable(token.content), token.id));
    }
    if (!known && token.id != next) {
      throw DataError(fmt::format(
          "the added token '{}' has the id {}, but the next free id is {}: the ids of added tokens "
          "must continue the vocabulary in order and without a gap",
          printable(token.content), token.id, next));
    }
    next = std::max(next, std::int64_t{token.id} + 1);
    std::string text = token.normalized ? normalizer.apply(token.content) : token.content;
    (token.normalized ? normalized_ : raw_).add(std::move(text), all_.size());
    all_.push_back(std::move(token));
  }
  raw_.finish();
  normalized_.finish();
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &all_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = std::ranges::find(all_, content, &AddedToken::content);
  return found == all_.end() ? nullptr : &*found;
}

void AddedTokens::Finder::add(std::string text, std::size_t token) {
  if (!text.empty()) {
    entries_.push_back({std::move(text), token});
  }
}

void AddedTokens::Finder::finish() {
  by_first_byte_.resize(entries_.empty() ? 0 : 256);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto first = static_cast<unsigned char>(entries_[i].text[0]);
    by_first_byte_[first].push_back(i);
    begins_[first] = true;
  }
  if (std::ranges::count(begins_, true) == 1) {
    only_first_ = entries_[0].text[0];
  }
  for (auto& same : by_first_byte_) {
    std::ranges::stable_sort(same, std::greater<>(),
                             [&](std::size_t i) { return entries_[i].text.size(); });
  }
}

std::size_t AddedTokens::Finder::candidate(std::string_view text, std::size_t at) const {
  if (only_first_) {
    return std::min(text.find(*only_first_, at), text.size());
  }
  while (at < text.size() && !begins_[static_cast<unsigned char>(text[at])]) {
    ++at;
  }
  return at;
}

const AddedTokens::Finder::Entry* AddedTokens::Finder::match(std::string_view text,
                                                             std::size_t at) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    const Entry& entry = entries_[i];
    if (text.compare(at, entry.text.size(), entry.text) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

std::vector<TokenSpan> AddedTokens::Finder::cut(std::string_view text,
                                                const std::vector<AddedToken>& all) const {
  std::vector<TokenSpan> spans;
  std::size_t done = 0;
  std::size_t at = entries_.empty() ? text.size() : 0;
  while ((at = candidate(text, at)) < text.size()) {
    const Entry* const found = match(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const AddedToken& token = all[found->token];
    std::size_t start = at;
    std::size_t end = at + found->text.size();
    at = end;
    if (token.single_word && ((start > 0 && is_word_at(text, previous_character(text, start))) ||
                              (end < text.size() && is_word_at(text, end)))) {
      continue;
    }
    start = token.lstrip ? std::max(without_spaces_before(text, start), done) : start;
    end = token.rstrip ? without_spaces_after(text, end) : end;
    if (done < start) {
      spans.push_back({text.substr(done, start - done), -1});
    }
    spans.push_back({text.substr(start, end - start), token.id});
    done = end;
  }
  if (done < text.size()) {
    spans.push_back({text.substr(done), -1});
  }
  return spans;
}

}  // namespace trireme
