#include "io/data/chat_marks.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMostAgain = std::size_t{256} << 20;

// Returns how many ids at the beginning are those of the first `bytes` bytes of the text alone.
std::size_t ids_of_start(const Tokenizer& tokenizer, std::string_view text, std::size_t bytes,
                         const std::vector<std::int32_t>& ids) {
  if (bytes == text.size()) {
    return ids.size();
  }
  std::vector<std::int32_t> start;
  tokenizer.encode(text.substr(0, bytes), start);
  const auto [in_start, in_ids] = std::ranges::mismatch(start, ids);
  return static_cast<std::size_t>(in_start - start.begin());
}

// Returns the end of an answer at ids [begin, end) without the white space behind what ends it.
std::size_t end_of_answer(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                          std::size_t begin, std::size_t end) {
  for (std::size_t last = end; last > begin; --last) {
    if (tokenizer.is_special(ids[last - 1])) {
      const std::string behind = tokenizer.decode(std::span(ids).subspan(last, end - last));
      return stripped(behind).empty() ? last : end;
    }
  }
  return end;
}

}  // namespace

EncodedChat encode_chat(const Tokenizer& tokenizer, const RenderedChat& chat) {
  EncodedChat encoded;
  tokenizer.encode(chat.text, encoded.ids);
  encoded.marks.resize(encoded.ids.size(), 0);
  std::size_t again = 0;  // bytes that are encoded once more to find where answers are
  for (const auto& [begin, end] : chat.answers) {
    again += begin + end;
    if (again > kMostAgain) {
      throw DataError(
          fmt::format("a conversation of {} bytes with {} answers takes too long to encode: cut it",
                      chat.text.size(), chat.answers.size()));
    }
    const std::size_t first = ids_of_start(tokenizer, chat.text, begin, encoded.ids);
    const std::size_t past = ids_of_start(tokenizer, chat.text, end, encoded.ids);
    const std::size_t last = end_of_answer(tokenizer, encoded.ids, first, past);
    for (std::size_t i = first; i < last; ++i) {
      encoded.marks[i] = 1;
    }
  }
  return encoded;
}

}  // namespace trireme
