// Says in llama.cpp's terms how text becomes the ids of a model: the values of a GGUF file that
// begin with "tokenizer." (ggml, docs/gguf.md; llama.cpp, src/llama-vocab.cpp). llama.cpp has two
// kinds of BPE:
//
//   gpt2    byte-level: words are cut by an expression that "pre" names, and merges have ranks
//   llama   SentencePiece: text is not cut, and the pair whose token has the highest score is
//           merged. The scores are made from the ranks of the merges, if these agree with scores
//
// Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/tokens/tokenizer_files.h"
#include "src/interchange/gguf.h"

namespace trireme {

struct GgufVocabulary {
  std::map<std::string, GgufValue> values;
  std::string summary;                 // of what llama.cpp gets; empty if `missing` is not
  std::string missing;                 // why llama.cpp cannot have this tokenizer, or ""
  std::vector<std::string> otherwise;  // what llama.cpp does in another way than the tokenizer
};

// What a model is used to, beyond what its tokenizer says.
struct GgufTextHabits {
  std::vector<std::int32_t> ends = {};  // ids at which it ends a text
  bool has_no_other_ends = false;       // whether the one that ends a document is none, either
  bool begins = true;                   // whether it knows what the template puts before a text
};

// rows: the ids of the model; those that the tokenizer does not use become unused tokens.
GgufVocabulary gguf_vocabulary(const TokenizerFiles& files, std::int64_t rows,
                               const GgufTextHabits& habits = {});
// The same for the tokenizer "bytes".
GgufVocabulary gguf_byte_vocabulary(std::int64_t rows);
// Without a tokenizer, llama.cpp takes and gives ids. why: for a warning.
GgufVocabulary no_gguf_vocabulary(std::string why);

}  // namespace trireme
