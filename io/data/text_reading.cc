#include "io/data/text_reading.h"

#include <algorithm>

#include "io/data/document_reading.h"
#include "io/data/line_blocks.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Returns the number, from 1, of the line that starts at byte `start`, for messages. Reads all that
// precedes it.
std::int64_t line_number(const File& file, std::int64_t start) {
  std::int64_t number = 1;
  FileRange range(file, 0, start);
  LineBlocks before(range, printable(file.path().string()), false);
  while (const auto block = before.next()) {
    number += std::ranges::count(block->text, '\n');
  }
  return number;
}

File open_unchanged(const InputFile& input) {
  File file = File::open_to_read(input.path);
  if (file.size() != input.bytes) {
    throw DataError(
        fmt::format("{}: the file has {} bytes, but had {} when it was listed: it changes while it "
                    "is packed; run the command again when the file is complete",
                    printable(input.path), file.size(), input.bytes));
  }
  return file;
}

// Reads one piece of one file, and reports the bytes of the file that have been read.
class PieceReading {
 public:
  PieceReading(const TextInputs& inputs, std::size_t file, TextSink& to,
               const std::function<void(std::int64_t)>& read)
      : input_(inputs.files[file]),
        is_removed_(!input_.is_jsonl() && !input_.is_archive() &&
                    inputs.is_removed({static_cast<std::int64_t>(file), 0})),
        to_(to),
        read_(read),
        file_(open_unchanged(input_)),
        documents_(inputs, file, to, passed_) {}

  void run(const TextPiece& piece) {
    const bool is_start = piece.begin == 0;
    if (is_removed_) {
      documents_.counts.files += is_start ? 1 : 0;
      documents_.counts.duplicates += is_start ? 1 : 0;
      return;
    }
    if (!is_start && input_.is_plain_text() && looks_binary(input_)) {
      return;  // counted with the first piece
    }
    const std::int64_t begin = border(piece.begin);
    const std::int64_t end = border(piece.end);
    FileRange range(file_, begin, end);
    range_ = &range;
    TextFound found = TextFound::nothing;
    if (input_.compression() == Compression::none) {
      found = contents(range, begin, is_start);
    } else {
      found =
          contents(*decompress(range, input_.compression(), printable(input_.path)), 0, is_start);
    }
    if (found == TextFound::text) {
      // Only the file's last piece ends with an end-of-document token: the file may continue in the
      // next shard.
      to_.end_document(end == input_.bytes);
    }
    documents_.counts.files += is_start && found != TextFound::binary ? 1 : 0;
    documents_.counts.binary_files += found == TextFound::binary ? 1 : 0;
    passed_();
  }

  const PackCounts& counts() const { return documents_.counts; }

 private:
  // Returns where the piece that is planned to begin or end at a byte does so.
  std::int64_t border(std::int64_t planned) const {
    return planned == 0 || planned == input_.bytes
               ? planned
               : line_start(file_, planned, input_.bytes, input_.is_jsonl());
  }

  // begin: of the stream, in what the file holds. Returns what was found of a single document.
  TextFound contents(ByteStream& from, std::int64_t begin, bool is_start) {
    if (input_.is_archive()) {
      documents_.archive(from);
      return TextFound::nothing;
    }
    if (input_.is_jsonl()) {
      documents_.lines(from, {.place = printable(input_.path),
                              .start = begin,
                              .first_byte = begin,
                              .first_line = [this, begin] { return line_number_of(begin); }});
      return TextFound::nothing;
    }
    const TextFound found = documents_.text(from, printable(input_.path), 0, is_start);
    if (found == TextFound::nothing && is_start) {
      ++documents_.counts.empty_documents;
    }
    return found;
  }

  std::int64_t line_number_of(std::int64_t begin) const {
    return begin == 0 ? 1 : line_number(file_, begin);
  }

  const InputFile& input_;
  bool is_removed_;  // the file is one document, which is left out
  TextSink& to_;
  const std::function<void(std::int64_t)>& read_;
  File file_;
  const FileRange* range_ = nullptr;
  std::int64_t reported_ = 0;
  const std::function<void()> passed_ = [this] {
    if (read_) {
      read_(range_->passed() - reported_);
      reported_ = range_->passed();
    }
  };
  DocumentReading documents_;
};

}  // namespace

bool looks_binary(const InputFile& input) {
  constexpr std::int64_t kHeadBytes = 8192;
  const File file = File::open_to_read(input.path);
  FileRange range(file, 0, std::min(input.bytes, file.size()));
  std::string head(static_cast<std::size_t>(kHeadBytes), '\0');
  const std::int64_t got =
      input.compression() == Compression::none
          ? read_fully(range, head.data(), kHeadBytes)
          : read_fully(*decompress(range, input.compression(), printable(input.path)), head.data(),
                       kHeadBytes);
  return std::string_view(head).substr(0, static_cast<std::size_t>(got)).find('\0') !=
         std::string::npos;
}

PackCounts& PackCounts::operator+=(const PackCounts& other) {
  files += other.files;
  binary_files += other.binary_files;
  empty_documents += other.empty_documents;
  skipped_members += other.skipped_members;
  duplicates += other.duplicates;
  return *this;
}

PackCounts read_texts(const TextInputs& inputs, const TextShard& plan, TextSink& to,
                      const std::function<void(std::int64_t)>& read) {
  PackCounts counts;
  for (const TextPiece& piece : plan.pieces) {
    PieceReading reading(inputs, piece.file, to, read);
    reading.run(piece);
    counts += reading.counts();
  }
  return counts;
}

PackCounts read_share(const TextInputs& inputs, const std::vector<TextShard>& plan, TextSink& to,
                      int rank, int size,
                      const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const auto first = static_cast<std::size_t>(rank);
  const auto stride = static_cast<std::size_t>(size);
  std::int64_t total = 0;
  for (std::size_t i = first; i < plan.size(); i += stride) {
    total += plan[i].input_bytes();
  }
  PackCounts counts;
  std::int64_t done = 0;
  for (std::size_t i = first; i < plan.size(); i += stride) {
    counts += read_texts(inputs, plan[i], to, [&](std::int64_t bytes) {
      done += bytes;
      if (progress) {
        progress(done, total);
      }
    });
  }
  return counts;
}

}  // namespace trireme
