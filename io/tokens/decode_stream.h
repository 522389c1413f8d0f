// DecodeStream turns token ids into text one by one, so that all pieces together are the text of
// all ids: a character may take several tokens, and the first token of a text may lose a blank.
// Borrows the tokenizer; for one thread.
#pragma once

#include <string>
#include <vector>

#include "io/data/tokenizer.h"

namespace trireme {

class DecodeStream {
 public:
  // prompt: the ids that the new ones continue.
  DecodeStream(const Tokenizer& tokenizer, std::vector<std::int32_t> prompt)
      : tokenizer_(tokenizer), ids_(std::move(prompt)), shown_(ids_.size()) {}

  // Returns the text that is complete with this id; it may be empty.
  std::string add(std::int32_t id) {
    ids_.push_back(id);
    std::string text = beyond_shown();
    if (text.empty() || text.ends_with("\xEF\xBF\xBD")) {
      return "";
    }
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shown_));
    shown_ = ids_.size();
    return text;
  }
  // Returns what is left at the end, such as a part of a character.
  std::string rest() {
    std::string text = beyond_shown();
    shown_ = ids_.size();
    return text;
  }

 private:
  std::string beyond_shown() const {
    const std::size_t before = tokenizer_.decode(std::span(ids_).first(shown_)).size();
    std::string text = tokenizer_.decode(ids_);
    return text.size() > before ? text.substr(before) : "";
  }

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;  // the last ones whose text was shown, then the others
  std::size_t shown_;
};

}  // namespace trireme
