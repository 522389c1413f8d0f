// Reads the documents in the pieces of text files, one after the other. One thread; borrows all
// arguments for the duration of the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/pack_plan.h"
#include "src/base/file.h"

namespace trireme {

// PackCounts says what was found in the inputs. A file is counted in the shard that holds its
// beginning.
struct PackCounts {
  std::int64_t files = 0;
  std::int64_t binary_files = 0;  // skipped because of a NUL in the first 8 KiB
  std::int64_t empty_documents = 0;

  PackCounts& operator+=(const PackCounts& other);
};

// Returns whether the file is skipped as binary, by git's rule: a NUL in the first 8 KiB.
bool looks_binary(const File& file);

struct TextInputs {
  const std::vector<InputFile>& files;
  const Selection& selection;
  std::string field;  // name of the jsonl field that holds the text
};

// TextSink gets the texts of documents.
class TextSink {
 public:
  virtual ~TextSink() = default;
  // Takes a document, or a part of a long one that ends with a line. Never empty.
  virtual void take(std::string_view text) = 0;
  // The document has ended here (`is_whole`), or continues in the next shard.
  virtual void end_document(bool is_whole) = 0;
};

// `read` is called with the number of input bytes just processed. It may be empty. Throws DataError
// for a line that is not JSON or has no such field, or a file that has changed.
PackCounts read_texts(const TextInputs& inputs, const TextShard& plan, TextSink& to,
                      const std::function<void(std::int64_t)>& read);

}  // namespace trireme
