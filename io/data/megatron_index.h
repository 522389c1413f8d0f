// Megatron-LM keeps a dataset in two files: PREFIX.bin has the token ids of all sequences one after
// another, PREFIX.idx says where they lie (megatron/core/datasets/indexed_dataset.py). All integers
// are little endian, and not aligned:
//
//   "MMIDIDX\0\0" | u64 version 1 | u8 type | u64 S | u64 D | i32 lengths [S] | i64 offsets [S] |
//   i64 documents [D], as numbers of sequences: first 0, last S
//
//   types: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/data/foreign_array.h"

namespace trireme {

// MegatronIndex is the array of the documents' offsets in tokens: 0, then where each document ends.
// Reads the index in blocks, so that memory is bounded. Borrows the file; for one thread.
class MegatronIndex final : public ForeignArray {
 public:
  // idx: PREFIX.idx. bin_bytes: the size of PREFIX.bin. Throws DataError that begins with the path
  // unless the header is one of integers and the arrays fill the file.
  MegatronIndex(const File& idx, std::int64_t bin_bytes);

  IntegerType type() const { return type_; }
  std::int64_t tokens() const { return bin_bytes_ / type_.bytes; }
  // Throws DataError unless sequences and documents follow one another without gaps up to the end
  // of PREFIX.bin.
  void check_all() const;

  std::int64_t size() const override { return documents_; }
  // Throws DataError for a document that is not within PREFIX.bin.
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void check_sequences() const;
  void check_documents() const;
  std::int64_t offset_of(std::int64_t sequence);

  const File& idx_;
  std::int64_t bin_bytes_;
  IntegerType type_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;       // borders: one more than there are documents
  std::vector<std::int64_t> block_;  // offsets of sequences, in bytes
  std::int64_t block_begin_ = 0;
};

// The parts of an index that describe some consecutive documents, each of which is one sequence.
struct MegatronPart {
  std::string lengths;
  std::string offsets;
  std::string documents;  // numbers of the sequences with which they begin
};

// lengths: of the documents, in tokens. first_token, first_document: what precedes them. Throws
// DataError for a document of 2^31 tokens or more.
MegatronPart megatron_part(std::span<const std::int64_t> lengths, std::int64_t first_token,
                           std::int64_t first_document, int token_bytes);

// Returns the header of an index of `documents` sequences of u16 (2) or i32 (4).
std::string megatron_header(std::int64_t documents, int token_bytes);
// Return where the parts of document `number` lie in an index of `documents`. Behind them lies the
// number of the sequences, at megatron_documents_at(documents, documents).
std::int64_t megatron_lengths_at(std::int64_t number);
std::int64_t megatron_offsets_at(std::int64_t number, std::int64_t documents);
std::int64_t megatron_documents_at(std::int64_t number, std::int64_t documents);

}  // namespace trireme
