// TarReader reads an archive of tar from its beginning to its end: the formats ustar and pax (POSIX
// 1003.1, pax interchange format), GNU's long names and large sizes, and archives that were joined.
// Names are never opened as paths, and links lead nowhere. As a ByteStream it is the contents of
// the current member. Borrows the stream; for one thread.
//
//   header of 512 bytes | contents, padded with zeros to 512 bytes | ... | two blocks of zeros
//
//   header: name [100] | ... 124: size [12] | ... 148: checksum [8] | 156: type | ...
//           257: "ustar\0" | ... 345: prefix of the name [155]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/archive/byte_stream.h"

namespace trireme {

struct TarMember {
  std::string name;
  std::int64_t bytes = 0;   // of the contents
  std::int64_t offset = 0;  // of the member in the archive
  bool is_file = false;     // otherwise a folder, link or special file
};

class TarReader final : public ByteStream {
 public:
  // name: of the archive, for messages.
  TarReader(ByteStream& from, std::string name) : from_(from), name_(std::move(name)) {}

  // Returns the next member, or nothing at the end. Passes over what has not been read of the one
  // before. Throws DataError for headers with a wrong checksum or of unknown types, sparse files,
  // and archives that are cut off.
  std::optional<TarMember> next();
  std::int64_t read(char* to, std::int64_t bytes) override;
  std::int64_t skip(std::int64_t bytes) override;

 private:
  // What extended headers say of the next member.
  struct Extension {
    std::optional<std::string> name;  // of pax
    std::optional<std::string> gnu_name;
    std::optional<std::int64_t> bytes;
    bool is_there = false;
  };

  [[noreturn]] void fail(const std::string& why) const;
  bool next_header();
  void end_member();
  void read_extension(char type, std::int64_t bytes, Extension& extension);
  void read_pax(std::string_view records, bool is_global, Extension& extension) const;
  std::optional<std::int64_t> number(std::size_t at, std::size_t bytes) const;
  std::string_view field(std::size_t at, std::size_t bytes) const;
  std::string header_name() const;

  ByteStream& from_;
  std::string name_;
  std::string header_ = std::string(512, '\0');
  std::int64_t position_ = 0;  // in the archive
  std::int64_t left_ = 0;      // of the contents
  std::int64_t padding_ = 0;   // behind them
};

}  // namespace trireme
