// DecodeStream turns token ids into text one by one, so that the pieces together are the text of
// all ids and none of them is changed by the ids after it: a character may take several tokens, a
// run of byte tokens has a text only when it has ended, and the first token of a text may lose a
// blank. Borrows the tokenizer; for one thread.
#pragma once

#include <string>
#include <vector>

#include "io/data/tokenizer.h"

namespace trireme {

class DecodeStream {
 public:
  // prompt: the ids that the new ones continue. Bytes at its end are complete, so that those of the
  // new ids begin a run of their own.
  DecodeStream(const Tokenizer& tokenizer, std::vector<std::int32_t> prompt)
      : tokenizer_(tokenizer), ids_(std::move(prompt)), shown_(tokenizer.settled(ids_)) {
    ids_.resize(shown_);
  }

  // Returns the text that is complete with this id; it may be empty.
  std::string add(std::int32_t id) {
    ids_.push_back(id);
    const std::size_t settled = tokenizer_.settled(ids_);
    std::string text = text_until(settled);
    if (text.empty() || text.ends_with("\xEF\xBF\xBD")) {
      return "";
    }
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shown_));
    shown_ = settled - shown_;
    return text;
  }
  // Returns what is left at the end, such as a part of a character.
  std::string rest() {
    std::string text = text_until(ids_.size());
    shown_ = ids_.size();
    return text;
  }

 private:
  // Returns the text of the ids from those shown until `end`.
  std::string text_until(std::size_t end) const {
    if (end <= shown_) {
      return "";
    }
    const std::span<const std::int32_t> ids(ids_);
    const std::size_t before = tokenizer_.decode(ids.first(shown_)).size();
    std::string text = tokenizer_.decode(ids.first(end));
    return text.size() > before ? text.substr(before) : "";
  }

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;  // the last ones whose text was shown, then the others
  std::size_t shown_;
};

}  // namespace trireme
