// Feeds the documents in a shard's pieces through the tokenizer into the shard's writer. One
// thread; borrows all arguments for the duration of the call.
#pragma once

#include <functional>

#include "io/data/shard_writer.h"
#include "io/data/text_reading.h"
#include "io/data/tokenizer.h"

namespace trireme {

// `read` is called with the number of input bytes just processed. It may be empty.
PackCounts pack_text(const TextInputs& inputs, const Tokenizer& tokenizer, const TextShard& plan,
                     ShardWriter& writer, const std::function<void(std::int64_t)>& read);

}  // namespace trireme
