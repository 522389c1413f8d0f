#include "io/data/shard_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <unistd.h>

#include "io/data/block_digests.h"
#include "io/data/shard_check.h"
#include "io/data/shard_cipher.h"
#include "io/h5/h5_file.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "tokens are stored little endian");

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

template <class Stored>
void narrow(std::span<const std::int32_t> tokens, char* to) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto stored = static_cast<Stored>(tokens[i]);
    std::memcpy(to + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

void check_range(std::span<const std::int32_t> tokens, std::int64_t vocab) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= vocab) {
      throw DataError(
          fmt::format("token {} is outside the vocabulary of {}: give the size of the vocabulary "
                      "with which the tokens were made",
                      token, vocab));
    }
  }
}

// The bytes that a block of a file has in common with data that lies in it.
struct Overlap {
  Overlap(std::int64_t block_begin, std::int64_t block_bytes, std::int64_t data_begin,
          std::int64_t data_bytes)
      : in_block(std::max<std::int64_t>(data_begin - block_begin, 0)),
        in_data(block_begin + in_block - data_begin),
        bytes(std::min(block_bytes - in_block, data_bytes - in_data)) {}

  std::int64_t in_block;  // offset of the common bytes in the block
  std::int64_t in_data;   // their offset in the data
  std::int64_t bytes;     // not positive if there are none
};

}  // namespace

ShardWriter::ShardWriter(fs::path folder, std::string name, ShardFormat format,
                         std::shared_ptr<const DataKey> key)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      format_(std::move(format)),
      key_(std::move(key)),
      temporary_path_(folder_ / (name_ + ".tmp")) {
  spool_.emplace(folder_ / (name_ + ".tokens.tmp"), key_ != nullptr);
  if (format_.has_mask) {
    mask_spool_.emplace(folder_ / (name_ + ".mask.tmp"), key_ != nullptr);
  }
}

ShardWriter::~ShardWriter() { ::unlink(temporary_path_.c_str()); }

void ShardWriter::append(std::span<const std::int32_t> tokens) {
  check_range(tokens, format_.vocab);
  const auto width = static_cast<std::size_t>(format_.token_bytes);
  const std::size_t old = buffer_.size();
  buffer_.resize(old + tokens.size() * width);
  if (width == 2) {
    narrow<std::uint16_t>(tokens, buffer_.data() + old);
  } else {
    narrow<std::uint32_t>(tokens, buffer_.data() + old);
  }
  n_tokens_ += static_cast<std::int64_t>(tokens.size());
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void ShardWriter::append(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> mask) {
  check(mask_spool_ && mask.size() == tokens.size(), "a shard with a mask has one for each token");
  append(tokens);
  mask_spool_->append(reinterpret_cast<const char*>(mask.data()), std::ssize(mask));
  n_masked_ += std::ssize(mask);
  n_targets_ += std::ranges::count(mask, 1);
}

void ShardWriter::flush() {
  spool_->append(buffer_.data(), static_cast<std::int64_t>(buffer_.size()));
  buffer_.clear();
}

void ShardWriter::end_document() {
  const auto end = static_cast<std::uint64_t>(n_tokens_);
  if (end != doc_offsets_.back()) {
    doc_offsets_.push_back(end);
  }
}

ShardEntry ShardWriter::finish() {
  check(n_tokens_ > 0, "a shard has tokens");
  end_document();
  flush();
  ShardEntry shard;
  shard.path = name_;
  shard.n_tokens = n_tokens_;
  shard.n_docs = static_cast<std::int64_t>(doc_offsets_.size()) - 1;
  shard.data_bytes = n_tokens_ * format_.token_bytes;
  shard.docs_bytes = static_cast<std::int64_t>(doc_offsets_.size() * sizeof(std::uint64_t));
  spool_->end();
  if (mask_spool_) {
    check(n_masked_ == n_tokens_, "all tokens of a shard have a mask, or none");
    shard.mask_bytes = n_tokens_;
    shard.n_targets = n_targets_;
    mask_spool_->end();
  }
  if (key_ == nullptr) {
    write_plain(shard);
  } else {
    write_encrypted(shard);
  }
  const fs::path path = folder_ / name_;
  ::unlink(path.c_str());
  rename_durably(temporary_path_, path);
  spool_.reset();
  mask_spool_.reset();
  return shard;
}

void ShardWriter::write_plain(ShardEntry& shard) {
  lay_out(shard);
  fill(shard);
  // libhdf5 may lose metadata without reporting an error, so the shard is read back before it
  // counts.
  check_shard(temporary_path_, shard, format_);
  FileDigests digests = digest_file(File::open_to_read(temporary_path_));
  shard.bytes = digests.bytes;
  shard.xxh3 = digests.whole;
  shard.blocks = std::move(digests.blocks);
}

// libhdf5 lays out the file without tokens and offsets. What it writes is in the manifest as well.
// Then each block is completed in memory and encrypted in its place.
void ShardWriter::write_encrypted(ShardEntry& shard) {
  lay_out(shard);
  check_layout(temporary_path_, shard, format_);
  File file = File::open_to_update(temporary_path_);
  shard.bytes = file.size();
  const auto* const docs = reinterpret_cast<const std::byte*>(doc_offsets_.data());
  const auto read = [&](std::int64_t offset, std::int64_t bytes, std::byte* to) {
    const Overlap offsets(offset, bytes, shard.docs_offset, shard.docs_bytes);
    const Overlap tokens(offset, bytes, shard.data_offset, shard.data_bytes);
    const Overlap mask(offset, bytes, shard.mask_offset, shard.mask_bytes);
    if (tokens.bytes < bytes) {
      file.read_exactly_at(offset, to, bytes);
    }
    if (offsets.bytes > 0) {
      std::memcpy(to + offsets.in_block, docs + offsets.in_data,
                  static_cast<std::size_t>(offsets.bytes));
    }
    if (tokens.bytes > 0) {
      spool_->read(tokens.in_data, to + tokens.in_block, tokens.bytes);
    }
    if (mask.bytes > 0) {
      mask_spool_->read(mask.in_data, to + mask.in_block, mask.bytes);
    }
  };
  seal_shard(file, *key_, read, shard, {});
  file.close();
}

void ShardWriter::lay_out(ShardEntry& shard) const {
  H5File file = H5File::create(temporary_path_, format_.alignment_bytes);
  file.set_attribute("format", kShardFormatName);
  file.set_attribute("version", kShardVersion);
  file.set_attribute("n_tokens", shard.n_tokens);
  file.set_attribute("n_docs", shard.n_docs);
  file.set_attribute("vocab", format_.vocab);
  file.set_attribute("tokenizer", format_.tokenizer);
  file.set_attribute("tokenizer_digest", format_.tokenizer_digest);
  file.set_attribute("source", format_.source);
  // The offsets precede the tokens: after an odd number of u16 tokens they would not be aligned to
  // 8 bytes.
  shard.docs_offset = file.create_contiguous("doc_offsets", H5Type::u64, shard.n_docs + 1);
  const H5Type type = format_.token_bytes == 2 ? H5Type::u16 : H5Type::u32;
  shard.data_offset = file.create_contiguous("tokens", type, shard.n_tokens);
  if (shard.has_mask()) {
    shard.mask_offset = file.create_contiguous(kLossMaskName, H5Type::u8, shard.n_tokens);
  }
  file.close();
  check(shard.data_offset % 8 == 0 && shard.docs_offset % 8 == 0, "HDF5 aligns data to 8 bytes");
}

void ShardWriter::fill(const ShardEntry& shard) {
  File file = File::open_to_update(temporary_path_);
  file.reserve(file.size());
  copy(*spool_, shard.data_bytes, file, shard.data_offset);
  if (shard.has_mask()) {
    copy(*mask_spool_, shard.mask_bytes, file, shard.mask_offset);
  }
  file.write_at(shard.docs_offset, doc_offsets_.data(), shard.docs_bytes);
  file.sync();
  file.close();
  spool_.reset();
}

void ShardWriter::copy(TokenSpool& from, std::int64_t bytes, File& to, std::int64_t offset) {
  std::vector<std::byte> buffer(kBufferBytes);
  for (std::int64_t done = 0; done < bytes;) {
    const auto some = std::min(bytes - done, static_cast<std::int64_t>(buffer.size()));
    from.read(done, buffer.data(), some);
    to.write_at(offset + done, buffer.data(), some);
    done += some;
  }
}

}  // namespace trireme
