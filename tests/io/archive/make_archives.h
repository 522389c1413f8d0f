// Makes compressed files and archives for tests, by zlib, libzstd and by hand.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "io/archive/byte_stream.h"

namespace trireme {

// TextStream is a text in memory, of which a read gives at most `at_once` bytes.
class TextStream final : public ByteStream {
 public:
  explicit TextStream(std::string text, std::int64_t at_once = std::int64_t{1} << 30)
      : text_(std::move(text)), at_once_(at_once) {}

  std::int64_t read(char* to, std::int64_t bytes) override {
    const std::int64_t some = std::min({bytes, at_once_, std::ssize(text_) - position_});
    std::copy_n(text_.data() + position_, some, to);
    position_ += some;
    return some;
  }

 private:
  std::string text_;
  std::int64_t at_once_;
  std::int64_t position_ = 0;
};

// Returns all that a stream has left.
inline std::string all_of(ByteStream& from, std::int64_t at_once = 1000) {
  std::string all;
  std::string some(static_cast<std::size_t>(at_once), '\0');
  while (const std::int64_t got = from.read(some.data(), at_once)) {
    all.append(some, 0, static_cast<std::size_t>(got));
  }
  return all;
}

inline std::string gzip_of(std::string_view text) {
  z_stream zlib{};
  EXPECT_EQ(::deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(::deflateBound(&zlib, text.size()), '\0');
  std::string copy(text);
  zlib.next_in = reinterpret_cast<Bytef*>(copy.data());
  zlib.avail_in = static_cast<uInt>(copy.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&zlib, Z_FINISH), Z_STREAM_END);
  packed.resize(zlib.total_out);
  ::deflateEnd(&zlib);
  return packed;
}

// window_log: 0 lets the library choose.
inline std::string zstd_of(std::string_view text, int window_log = 0) {
  ZSTD_CCtx* const context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  ZSTD_inBuffer input{text.data(), text.size(), 0};
  ZSTD_outBuffer output{packed.data(), packed.size(), 0};
  // In two calls, so that the library does not know the size and keeps the window.
  EXPECT_EQ(::ZSTD_isError(::ZSTD_compressStream2(context, &output, &input, ZSTD_e_continue)), 0U);
  EXPECT_EQ(::ZSTD_compressStream2(context, &output, &input, ZSTD_e_end), 0U);
  packed.resize(output.pos);
  ::ZSTD_freeCCtx(context);
  return packed;
}

// Writes the right checksum into a header of tar.
inline void sign_header(std::string& header) {
  header.replace(148, 8, 8, ' ');
  int sum = 0;
  for (const char c : header.substr(0, 512)) {
    sum += static_cast<unsigned char>(c);
  }
  header.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

inline std::string tar_header(const std::string& name, std::size_t bytes, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", bytes));
  header[156] = type;
  header.replace(257, 8, std::string("ustar\0", 6) + "00");
  sign_header(header);
  return header;
}

inline std::string tar_member(const std::string& name, const std::string& contents,
                              char type = '0') {
  return tar_header(name, contents.size(), type) + contents +
         std::string((512 - contents.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

}  // namespace trireme
