// From text to tokens: feeds the documents of a shard's pieces through the tokenizer into the
// shard's writer. One thread; borrows everything for the call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/data/pack_plan.h"
#include "io/data/shard_writer.h"
#include "io/data/tokenizer.h"
#include "src/base/file.h"

namespace trireme {

// What was met on the way. Files are counted by the shard that holds their beginning.
struct PackCounts {
  std::int64_t files = 0;
  std::int64_t binary_files = 0;  // skipped: a NUL among the first 8 KiB
  std::int64_t empty_documents = 0;

  PackCounts& operator+=(const PackCounts& other);
};

// Whether the file is skipped as binary, decided as git does it: a NUL among the first 8 KiB.
bool looks_binary(const File& file);

struct TextSource {
  const std::vector<InputFile>& files;
  const Selection& selection;
  const Tokenizer& tokenizer;
  std::string field;  // of a jsonl object that holds the text
};

// `read`: called with bytes of input as they are done with. May be empty.
PackCounts pack_text(const TextSource& source, const TextShard& plan, ShardWriter& writer,
                     const std::function<void(std::int64_t)>& read);

}  // namespace trireme
