// ShardWriter writes one token shard, from any number of tokens to a finished HDF5 file. It first
// appends the tokens to a temporary file, because HDF5 needs their number to allocate contiguous
// storage. Then libhdf5 lays out the shard, the tokens are copied to the offset it reports, and the
// file is synced, read back, digested and renamed. Owns its temporary files; for one thread.
//
//   PATH.tokens.tmp   raw tokens, little endian        PATH.tmp   the HDF5 file before its rename
//   PATH.mask.tmp     the loss mask, if there is one
//
// With a key, the tokens are spooled encrypted, and the file that libhdf5 has laid out is completed
// in memory and encrypted block by block: no tokens or document offsets reach the disk in plain.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"
#include "io/data/token_spool.h"

namespace trireme {

// ShardFormat holds the properties that all shards of a dataset share.
struct ShardFormat {
  int token_bytes = 2;
  std::int64_t vocab = 0;
  std::string tokenizer;
  std::string tokenizer_digest;
  std::string source;
  std::int64_t alignment_bytes = 4096;  // alignment of the tokens; 1 MiB suits Lustre
  bool has_mask = false;                // whether the shards have a loss mask
};

class ShardWriter {
 public:
  // The shard becomes the file folder/name. key: encrypts it; null if it is not to be encrypted.
  ShardWriter(std::filesystem::path folder, std::string name, ShardFormat format,
              std::shared_ptr<const DataKey> key = nullptr);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // tokens: i32 [any]. Throws DataError for a token outside the vocabulary.
  void append(std::span<const std::int32_t> tokens);
  // Does the same for a shard with a loss mask. mask: u8 [tokens.size()], 1 for those that count as
  // targets and 0 for others.
  void append(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> mask);
  // Does not count a document without tokens.
  void end_document();
  std::int64_t tokens() const { return n_tokens_; }
  const ShardFormat& format() const { return format_; }

  // Ends the last document and makes the file. Precondition: at least one token was appended.
  ShardEntry finish();

 private:
  void flush();
  void lay_out(ShardEntry& shard) const;
  void fill(const ShardEntry& shard);
  static void copy(TokenSpool& from, std::int64_t bytes, File& to, std::int64_t offset);
  void write_plain(ShardEntry& shard);
  void write_encrypted(ShardEntry& shard);

  std::filesystem::path folder_;
  std::string name_;
  ShardFormat format_;
  std::shared_ptr<const DataKey> key_;
  std::filesystem::path temporary_path_;
  std::optional<TokenSpool> spool_;
  std::optional<TokenSpool> mask_spool_;
  std::vector<char> buffer_;
  std::int64_t n_tokens_ = 0;
  std::int64_t n_masked_ = 0;  // tokens whose mask is there
  std::int64_t n_targets_ = 0;
  std::vector<std::uint64_t> doc_offsets_ = {0};
};

}  // namespace trireme
