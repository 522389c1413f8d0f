#include "io/data/text_reading.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/data/line_blocks.h"
#include "io/data/text_field.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kWholeBytes = std::size_t{32} << 20;

// Returns the number, from 1, of the line that starts at byte `start`, for messages. Reads all that
// precedes it.
std::int64_t line_number(const File& file, std::int64_t start) {
  std::int64_t number = 1;
  LineBlocks before(file, 0, start, false);
  while (const auto block = before.next()) {
    number += std::ranges::count(block->text, '\n');
  }
  return number;
}

// Returns the text of one jsonl line.
std::string text_of_line(std::string_view line, std::int64_t start, const TextInputs& inputs,
                         const File& file) {
  TextField found(inputs.field);
  const bool valid = nlohmann::json::sax_parse(line, &found);
  if (valid && found.text) {
    return std::move(*found.text);
  }
  throw DataError(fmt::format(
      "{}: line {}, at byte {}: {}", file.path().string(), line_number(file, start), start,
      valid ? fmt::format(
                  "there is no text field '{}': name the field that holds the text with --field",
                  inputs.field)
            : found.error));
}

// Reads one piece of one file.
class PieceReading {
 public:
  PieceReading(const TextInputs& inputs, const InputFile& input, TextSink& to)
      : inputs_(inputs), input_(input), to_(to), file_(File::open_to_read(input.path)) {
    if (file_.size() != input_.bytes) {
      throw DataError(
          fmt::format("{}: the file has {} bytes, but had {} when it was listed: it changes while "
                      "it is packed; run the command again when the file is complete",
                      input_.path, file_.size(), input_.bytes));
    }
  }

  void run(const TextPiece& piece, const std::function<void(std::int64_t)>& read) {
    if (!input_.is_jsonl() && looks_binary(file_)) {
      counts_.binary_files += piece.begin == 0 ? 1 : 0;
      return;
    }
    counts_.files += piece.begin == 0 ? 1 : 0;
    const std::int64_t begin = line_start(file_, piece.begin, input_.bytes, input_.is_jsonl());
    const std::int64_t end = line_start(file_, piece.end, input_.bytes, input_.is_jsonl());
    LineBlocks blocks(file_, begin, end, input_.is_jsonl());
    while (const auto block = blocks.next()) {
      if (input_.is_jsonl()) {
        lines(*block);
      } else {
        add_text(block->text);
      }
      if (read) {
        read(static_cast<std::int64_t>(block->text.size()));
      }
    }
    add_text("", true);
    if (!input_.is_jsonl() && end > begin) {
      // Only the file's last piece ends with an end-of-document token: the file may continue in the
      // next shard.
      to_.end_document(end == input_.bytes);
    }
  }

  const PackCounts& counts() const { return counts_; }

 private:
  void lines(const LineBlocks::Block& block) {
    for (std::size_t at = 0; at < block.text.size();) {
      const std::size_t newline = std::min(block.text.find('\n', at), block.text.size());
      const auto start = block.start + static_cast<std::int64_t>(at);
      const std::string_view line = block.text.substr(at, newline - at);
      at = newline + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos ||
          !inputs_.selection.takes(input_.name, start)) {
        continue;
      }
      const std::string text = text_of_line(line, start, inputs_, file_);
      if (text.empty()) {
        ++counts_.empty_documents;
        continue;
      }
      to_.take(text);
      to_.end_document(true);
    }
  }

  // Tokens depend on the text around them, so that a document is encoded as a whole, or in parts of
  // kWholeBytes that end with a line.
  void add_text(std::string_view block, bool is_last = false) {
    text_ += block;
    if (text_.size() >= kWholeBytes || (is_last && !text_.empty())) {
      to_.take(text_);
      text_.clear();
    }
  }

  const TextInputs& inputs_;
  const InputFile& input_;
  TextSink& to_;
  File file_;
  std::string text_;  // of the document, up to here
  PackCounts counts_;
};

}  // namespace

bool looks_binary(const File& file) {
  std::string head(8192, '\0');
  head.resize(static_cast<std::size_t>(
      file.read_at(0, head.data(), static_cast<std::int64_t>(head.size()))));
  return head.find('\0') != std::string::npos;
}

PackCounts& PackCounts::operator+=(const PackCounts& other) {
  files += other.files;
  binary_files += other.binary_files;
  empty_documents += other.empty_documents;
  return *this;
}

PackCounts read_texts(const TextInputs& inputs, const TextShard& plan, TextSink& to,
                      const std::function<void(std::int64_t)>& read) {
  PackCounts counts;
  for (const TextPiece& piece : plan.pieces) {
    PieceReading reading(inputs, inputs.files[piece.file], to);
    reading.run(piece, read);
    counts += reading.counts();
  }
  return counts;
}

}  // namespace trireme
