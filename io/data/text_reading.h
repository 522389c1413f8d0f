// Reads the documents in the pieces of text files, one after the other. One thread; borrows all
// arguments for the duration of the call.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/chat/chat_template.h"
#include "io/data/document_keys.h"
#include "io/data/pack_plan.h"

namespace trireme {

// PackCounts says what was found in the inputs. A file is counted in the shard that holds its
// beginning.
struct PackCounts {
  std::int64_t files = 0;
  std::int64_t binary_files = 0;  // skipped because of a NUL in the first 8 KiB
  std::int64_t empty_documents = 0;
  std::int64_t skipped_members = 0;  // of archives: those that gave no document
  std::int64_t duplicates = 0;       // left out because they repeat earlier documents

  PackCounts& operator+=(const PackCounts& other);
};

// Returns whether a file that is one document is skipped as binary, by git's rule: a NUL in the
// first 8 KiB, of the decompressed text if it is compressed.
bool looks_binary(const InputFile& file);

struct TextInputs {
  const std::vector<InputFile>& files;
  const Selection& selection;
  std::string field;  // name of the jsonl field that holds the text
  // Makes a text of each line, which is a conversation; null to take the text in the field.
  const ChatTemplate* chat = nullptr;
  // Documents that are left out, in order.
  std::span<const DocumentPlace> removed = {};

  bool is_removed(const DocumentPlace& place) const {
    return std::ranges::binary_search(removed, place);
  }
};

// TextSink gets the texts of documents.
class TextSink {
 public:
  virtual ~TextSink() = default;
  // A document begins here; parts of one that is cut between shards have one place. Nothing follows
  // if it turns out to be empty or binary.
  virtual void begin_document(const DocumentPlace& /*place*/) {}
  // Takes a document, or a part of a long one that ends with a line. Never empty.
  virtual void take(std::string_view text) = 0;
  // Takes a conversation, whose text is not empty.
  virtual void take_chat(const RenderedChat& chat) { take(chat.text); }
  // The document has ended here (`is_whole`), or continues in the next shard.
  virtual void end_document(bool is_whole) = 0;
};

// `read` is called with the number of input bytes just processed. It may be empty. Throws DataError
// for a line that is not JSON or has no such field, a file that has changed, and damaged compressed
// files and archives.
PackCounts read_texts(const TextInputs& inputs, const TextShard& plan, TextSink& to,
                      const std::function<void(std::int64_t)>& read);

// Reads this rank's share of the plan, every size-th of its parts. progress: called with the bytes
// of the files that have been read, and all that this rank reads; may be empty.
PackCounts read_share(const TextInputs& inputs, const std::vector<TextShard>& plan, TextSink& to,
                      int rank, int size,
                      const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme
