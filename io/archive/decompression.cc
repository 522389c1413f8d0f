#include "io/archive/decompression.h"

#include <algorithm>

#include <zlib.h>
#include <zstd.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kInputBytes = std::int64_t{1} << 17;
constexpr std::int64_t kMostOutput = std::int64_t{1} << 30;  // of one call; zlib counts in 32 bits

// Decompressor holds what both formats share: compressed bytes in a buffer, and the limits.
class Decompressor : public ByteStream {
 protected:
  Decompressor(ByteStream& from, const char* format, std::string name,
               const DecompressionLimits& limits)
      : limits_(limits),
        from_(from),
        format_(format),
        name_(std::move(name)),
        input_(static_cast<std::size_t>(kInputBytes), '\0') {}

  // Replaces the buffer by the next compressed bytes, and returns their number.
  std::int64_t refill() {
    const std::int64_t got = from_.read(input_.data(), kInputBytes);
    taken_ += got;
    return got;
  }
  char* input() { return input_.data(); }

  // Counts decompressed bytes and returns their number.
  std::int64_t count(std::int64_t bytes) {
    given_ += bytes;
    if (given_ - limits_.free_bytes > taken_ * limits_.ratio) {
      throw DataError(fmt::format(
          "{}: the first {} bytes expand to more than {} times as much, which text does "
          "not: if the file is not an attack, decompress it and pack the result",
          name_, taken_, limits_.ratio));
    }
    return bytes;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw DataError(
        fmt::format("{}: the {} data is damaged before byte {}: {}: copy or download "
                    "the file again",
                    name_, format_, taken_, why));
  }
  [[noreturn]] void fail_at_end() const {
    throw DataError(
        fmt::format("{}: the {} data is cut off after {} bytes: copy or download the file again",
                    name_, format_, taken_));
  }
  DecompressionLimits limits_;

 private:
  ByteStream& from_;
  const char* format_;
  std::string name_;
  std::string input_;
  std::int64_t taken_ = 0;  // compressed bytes
  std::int64_t given_ = 0;  // decompressed bytes
};

class GzipStream final : public Decompressor {
 public:
  GzipStream(ByteStream& from, std::string name, const DecompressionLimits& limits)
      : Decompressor(from, "gzip", std::move(name), limits) {
    constexpr int kGzipAlone = 16 + MAX_WBITS;
    check(::inflateInit2(&zlib_, kGzipAlone) == Z_OK, "zlib can be initialized");
  }
  ~GzipStream() override { ::inflateEnd(&zlib_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::int64_t read(char* to, std::int64_t bytes) override {
    const auto room = static_cast<uInt>(std::min(bytes, kMostOutput));
    while (room > 0) {
      if (zlib_.avail_in == 0 && !next_input()) {
        return 0;
      }
      if (!in_member_) {
        check(::inflateReset(&zlib_) == Z_OK, "zlib can be reset");
        in_member_ = true;
      }
      zlib_.next_out = reinterpret_cast<Bytef*>(to);
      zlib_.avail_out = room;
      const int code = ::inflate(&zlib_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        fail(zlib_.msg == nullptr ? "it is no gzip data" : zlib_.msg);
      }
      in_member_ = code != Z_STREAM_END;
      if (zlib_.avail_out < room) {
        return count(room - zlib_.avail_out);
      }
    }
    return 0;
  }

 private:
  // Returns whether there was more.
  bool next_input() {
    zlib_.next_in = reinterpret_cast<Bytef*>(input());
    zlib_.avail_in = static_cast<uInt>(refill());
    if (zlib_.avail_in == 0 && in_member_) {
      fail_at_end();
    }
    return zlib_.avail_in > 0;
  }

  z_stream zlib_{};
  bool in_member_ = true;
};

class ZstdStream final : public Decompressor {
 public:
  ZstdStream(ByteStream& from, std::string name, const DecompressionLimits& limits)
      : Decompressor(from, "zstd", std::move(name), limits), context_(::ZSTD_createDCtx()) {
    check(context_ != nullptr && ::ZSTD_isError(::ZSTD_DCtx_setParameter(
                                     context_, ZSTD_d_windowLogMax, limits_.window_log)) == 0,
          "zstd can be initialized");
  }
  ~ZstdStream() override { ::ZSTD_freeDCtx(context_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  std::int64_t read(char* to, std::int64_t bytes) override {
    while (bytes > 0) {
      // The decoder may hold output back, so it is asked before more input is read.
      ZSTD_outBuffer output{to, static_cast<std::size_t>(bytes), 0};
      const std::size_t before = zstd_.pos;
      const std::size_t code = ::ZSTD_decompressStream(context_, &output, &zstd_);
      if (::ZSTD_isError(code) != 0) {
        fail(::ZSTD_getErrorName(code));
      }
      if (zstd_.pos > before || output.pos > 0) {
        in_frame_ = code != 0;
      }
      if (output.pos > 0) {
        return count(static_cast<std::int64_t>(output.pos));
      }
      if (zstd_.pos == zstd_.size && !next_input()) {
        return 0;
      }
    }
    return 0;
  }

 private:
  // Returns whether there was more.
  bool next_input() {
    zstd_ = {input(), static_cast<std::size_t>(refill()), 0};
    if (zstd_.size == 0 && in_frame_) {
      fail_at_end();
    }
    return zstd_.size > 0;
  }

  ZSTD_DCtx* context_;
  ZSTD_inBuffer zstd_{nullptr, 0, 0};
  bool in_frame_ = true;
};

}  // namespace

bool has_suffix(std::string_view name, std::string_view suffix) {
  const auto same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return name.size() >= suffix.size() &&
         std::ranges::equal(name.substr(name.size() - suffix.size()), suffix, same);
}

Compression compression_of(std::string_view name) {
  return has_suffix(name, ".gz") || has_suffix(name, ".tgz") ? Compression::gzip
         : has_suffix(name, ".zst")                          ? Compression::zstd
                                                             : Compression::none;
}

std::string name_inside(std::string_view name) {
  if (has_suffix(name, ".tgz")) {
    return std::string(name.substr(0, name.size() - 4)) + ".tar";
  }
  return std::string(compression_of(name) == Compression::none ? name
                                                               : name.substr(0, name.rfind('.')));
}

std::unique_ptr<ByteStream> decompress(ByteStream& from, Compression compression, std::string name,
                                       const DecompressionLimits& limits) {
  check(compression != Compression::none, "the stream is compressed");
  if (compression == Compression::gzip) {
    return std::make_unique<GzipStream>(from, std::move(name), limits);
  }
  return std::make_unique<ZstdStream>(from, std::move(name), limits);
}

}  // namespace trireme
