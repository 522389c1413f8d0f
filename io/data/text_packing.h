// Feeds the documents in a shard's pieces through the tokenizer into the shard's writer. One
// thread; borrows all arguments for the duration of the call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/data/pack_plan.h"
#include "io/data/shard_writer.h"
#include "io/data/tokenizer.h"
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

struct TextSource {
  const std::vector<InputFile>& files;
  const Selection& selection;
  const Tokenizer& tokenizer;
  std::string field;  // name of the jsonl field that holds the text
};

// `read` is called with the number of input bytes just processed. It may be empty.
PackCounts pack_text(const TextSource& source, const TextShard& plan, ShardWriter& writer,
                     const std::function<void(std::int64_t)>& read);

}  // namespace trireme
