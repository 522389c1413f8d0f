// DocumentReading makes documents of streams: of text, of JSON Lines, and of archives. Private to
// io/data; for one thread.
//
// In an archive, consecutive members whose names agree up to the first dot of their last part are
// one group, as in WebDataset. Its .txt members are documents; if it has none, the text fields of
// its .json members are. Lines of .jsonl and .ndjson members are documents, too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/archive/byte_stream.h"
#include "io/archive/tar_reader.h"
#include "io/data/line_text.h"
#include "io/data/text_reading.h"

namespace trireme {

// Origin says where a stream of JSON Lines begins, for messages and the split.
struct LineOrigin {
  std::string place;            // what messages begin with: the file, and the member of an archive
  std::int64_t start = 0;       // byte in what the file holds; the split is made by it
  std::int64_t first_byte = 0;  // byte in `place`
  // Returns the number, from 1, of the first line.
  std::function<std::int64_t()> first_line = [] { return std::int64_t{1}; };
};

enum class TextFound { nothing, binary, text };

class DocumentReading {
 public:
  // passed: called after each block that has been read. Borrows everything.
  // file: index into inputs.files.
  DocumentReading(const TextInputs& inputs, std::size_t file, TextSink& to,
                  const std::function<void()>& passed)
      : inputs_(inputs),
        input_(inputs.files[file]),
        file_(static_cast<std::int64_t>(file)),
        name_(input_.name_of_text()),
        to_(to),
        passed_(passed),
        line_text_(inputs.field) {}

  // Reads one document, or a part of one. start: its byte in what the file holds. is_start: the
  // document begins with the stream, and is left out if it looks binary.
  TextFound text(ByteStream& from, const std::string& place, std::int64_t start, bool is_start);
  void lines(ByteStream& from, const LineOrigin& origin);
  void archive(ByteStream& from);

  PackCounts counts;

 private:
  // Object is a .json member of an archive.
  struct Object {
    std::string name;
    std::int64_t start;
    std::string contents;
  };

  // Group is the current group of an archive.
  struct Group {
    std::string key;
    bool is_taken = false;
    bool has_text = false;
    std::vector<Object> objects;
    std::int64_t object_bytes = 0;
  };

  void line(std::string_view line, std::int64_t number, std::int64_t start,
            const LineOrigin& origin);
  void add_text(std::string_view block, bool is_last = false);
  void member(const TarMember& member, TarReader& archive, Group& group);
  void keep_object(const TarMember& member, TarReader& archive, Group& group) const;
  void end_group(Group& group);
  // Passes on the document of a line or object. where: what an error begins with.
  void put(std::string_view object, std::int64_t start, const std::function<std::string()>& where);
  // Returns whether a document with such a text is left out, and counts it then.
  bool leaves_out(const std::string& text, std::int64_t start);

  const TextInputs& inputs_;
  const InputFile& input_;
  std::int64_t file_;
  std::string name_;  // by which the split is made
  TextSink& to_;
  const std::function<void()>& passed_;
  LineText line_text_;
  std::string text_;  // of the document, up to here
};

}  // namespace trireme
