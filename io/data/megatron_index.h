// Megatron-LM keeps a dataset in two files: PREFIX.bin has the token ids of all sequences one after
// another, PREFIX.idx says where they lie (megatron/core/datasets/indexed_dataset.py). All integers
// are little endian, and not aligned:
//
//   "MMIDIDX\0\0" | u64 version 1 | u8 type | u64 S | u64 D | i32 lengths [S] | i64 offsets [S] |
//   i64 documents [D], as numbers of sequences: first 0, last S
//
//   types: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/foreign_array.h"

namespace trireme {

struct MegatronIndex {
  IntegerType type;
  std::int64_t tokens = 0;
  // Offsets of documents in tokens: 0, then where each document ends, up to `tokens`.
  std::vector<std::int64_t> documents;
};

// idx: the contents of PREFIX.idx. bin_bytes: the size of PREFIX.bin. Throws DataError that begins
// with `name` unless the arrays fill the file, the type is one of integers, and sequences and
// documents follow one another without gaps up to the end of PREFIX.bin.
MegatronIndex parse_megatron_index(std::string_view idx, std::int64_t bin_bytes,
                                   const std::string& name);

// Returns the contents of PREFIX.idx for documents with these lengths in tokens, each of which is
// one sequence. token_bytes: 2 for u16, 4 for i32. Throws DataError for a document of 2^31 tokens
// or more.
std::string megatron_index_text(const std::vector<std::int64_t>& lengths, int token_bytes);

}  // namespace trireme
