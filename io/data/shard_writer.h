// ShardWriter: one token shard, from tokens in any number to a finished HDF5 file under its name.
// Tokens go to a spool first, since HDF5 has to know their number before it gives contiguous
// storage; then libhdf5 lays out the file, the tokens are copied to the offset it gave, everything
// is synced, read back, digested and renamed. Owns its temporary files. One thread.
//
//   PATH.tokens.tmp   raw tokens, little endian        PATH.tmp   the HDF5 file before its rename
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"
#include "src/base/file.h"

namespace trireme {

// What all shards of a dataset share.
struct ShardFormat {
  int token_bytes = 2;
  std::int64_t vocab = 0;
  std::string tokenizer;
  std::string tokenizer_digest;
  std::string source;
  std::int64_t alignment_bytes = 4096;  // of the data; 1 MiB suits Lustre
};

class ShardWriter {
 public:
  // folder/name is the file to make.
  ShardWriter(std::filesystem::path folder, std::string name, ShardFormat format);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // tokens: [any]. DataError for a token outside the vocabulary.
  void append(std::span<const std::int32_t> tokens);
  // A document without tokens is not counted.
  void end_document();
  std::int64_t tokens() const { return n_tokens_; }
  const ShardFormat& format() const { return format_; }

  // Ends the last document and makes the file. Needs at least one token.
  ShardEntry finish();

 private:
  void flush();
  void lay_out(ShardEntry& shard) const;
  void fill(const ShardEntry& shard);

  std::filesystem::path folder_;
  std::string name_;
  ShardFormat format_;
  std::filesystem::path spool_path_;
  std::filesystem::path temporary_path_;
  std::optional<File> spool_;
  std::vector<char> buffer_;
  std::int64_t n_tokens_ = 0;
  std::vector<std::uint64_t> doc_offsets_ = {0};
};

}  // namespace trireme
