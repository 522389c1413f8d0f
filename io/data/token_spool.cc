#include "io/data/token_spool.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

File new_file(const std::filesystem::path& path) {
  ::unlink(path.c_str());
  make_directories(path.parent_path());
  return File::create_new(path);
}

}  // namespace

TokenSpool::TokenSpool(std::filesystem::path path, bool is_encrypted)
    : path_(std::move(path)), file_(new_file(path_)) {
  if (is_encrypted) {
    cipher_.emplace(DataKey::generate(), "spool");
  }
}

TokenSpool::~TokenSpool() { ::unlink(path_.c_str()); }

void TokenSpool::append(const char* from, std::int64_t bytes) {
  bytes_ += bytes;
  if (!cipher_) {
    file_.write(from, bytes);
    return;
  }
  const auto* const added = reinterpret_cast<const std::byte*>(from);
  block_.insert(block_.end(), added, added + bytes);
  constexpr auto kBlock = static_cast<std::size_t>(kSealedBlockBytes);
  std::size_t written = 0;
  // A full block is held back as long as it may be the last one.
  for (; block_.size() - written > kBlock; written += kBlock) {
    sealed_.assign(block_.begin() + static_cast<std::ptrdiff_t>(written),
                   block_.begin() + static_cast<std::ptrdiff_t>(written + kBlock));
    put_block(kBlock, false);
  }
  block_.erase(block_.begin(), block_.begin() + static_cast<std::ptrdiff_t>(written));
}

void TokenSpool::put_block(std::size_t bytes, bool is_last) {
  tags_.push_back(cipher_->seal({std::ssize(tags_), is_last}, sealed_.data(),
                                static_cast<std::int64_t>(bytes), sealed_.data()));
  file_.write(sealed_.data(), static_cast<std::int64_t>(bytes));
}

void TokenSpool::end() {
  if (cipher_ && !block_.empty()) {
    sealed_ = block_;
    put_block(sealed_.size(), true);
  }
}

void TokenSpool::load_block(std::int64_t number) {
  const std::int64_t begin = number * kSealedBlockBytes;
  const std::int64_t bytes = std::min(kSealedBlockBytes, bytes_ - begin);
  sealed_.resize(static_cast<std::size_t>(bytes));
  block_.resize(static_cast<std::size_t>(bytes));
  file_.read_exactly_at(begin, sealed_.data(), bytes);
  const bool is_last = number + 1 == std::ssize(tags_);
  if (!cipher_->open({number, is_last}, sealed_.data(), bytes,
                     tags_[static_cast<std::size_t>(number)], block_.data())) {
    throw DataError(
        fmt::format("{}: the file was changed or damaged while the dataset was packed: run the "
                    "command again",
                    path_.string()));
  }
  loaded_ = number;
}

void TokenSpool::read(std::int64_t offset, std::byte* to, std::int64_t bytes) {
  check(offset >= 0 && offset + bytes <= bytes_, "the spool holds what is read");
  if (!cipher_) {
    file_.read_exactly_at(offset, to, bytes);
    return;
  }
  while (bytes > 0) {
    const std::int64_t number = offset / kSealedBlockBytes;
    if (number != loaded_) {
      load_block(number);
    }
    const std::int64_t at = offset - number * kSealedBlockBytes;
    const std::int64_t some = std::min(bytes, std::ssize(block_) - at);
    std::memcpy(to, block_.data() + at, static_cast<std::size_t>(some));
    offset += some;
    to += some;
    bytes -= some;
  }
}

}  // namespace trireme
