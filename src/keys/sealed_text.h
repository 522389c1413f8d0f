// The format of encrypted files that grow by appending: logs, metrics, events, traces. A file
// consists of lines, and holds the text of its records, one after the other:
//
//   TRIREME-SEALED-1 KEY SALT PREVIOUS MAC     begins a section: what one process has appended
//   <base64>                                   a record, up to 1 MiB of text, encrypted
//   ...
//   <base64 of 16 bytes>                       ends the section
//   TRIREME-SEALED-1 ...                       the next section
//
//   KEY       identity of the data key (data_key.h), 32 hexadecimal digits
//   SALT      16 random bytes, 32 digits
//   PREVIOUS  SHA-256 of the line before this one, without its end, 64 digits; zeros if it is the
//             first line of the file and the file continues no other one
//   MAC       HMAC-SHA256 of "NAME\n" and the line up to the blank before MAC, 64 digits, with the
//             data key's MAC key for `section`
//
// NAME is the path of the file in the run's folder; logs/rank-00000.1.jsonl counts as
// logs/rank-00000.jsonl. Records are encrypted like the blocks of a file called "NAME SALT"
// (block_cipher.h), with the number of the record in its section as that of the block. A record is
// its encrypted bytes and the tag. What ends a section is an empty last block.
//
// A section without an end was cut short by a crash, or by somebody: only the last line of a
// section that another one follows is authenticated as such.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/run_text.h"
#include "src/keys/block_cipher.h"
#include "src/keys/data_key.h"

namespace trireme {

// Encrypts what this process appends to one file. name: NAME.
class SectionSealer : public TextSealer {
 public:
  SectionSealer(std::shared_ptr<const DataKey> key, std::string name);

  std::string begin(std::string_view last_line) override;
  std::string seal(std::string_view text) override;
  std::string end() override;

 private:
  std::string record(std::string_view text, bool is_last);

  std::shared_ptr<const DataKey> key_;
  std::string name_;
  std::optional<BlockCipher> cipher_;  // of the section
  std::int64_t records_ = 0;           // in it
};

struct OpenedText {
  std::string text;
  std::string previous;   // PREVIOUS of the first section
  std::string first_key;  // KEY of the first section
  std::int64_t sections = 0;
  std::int64_t unfinished = 0;  // sections without an end
};

// Returns the data key with this identity; throws if there is none.
using FindDataKey = std::function<const DataKey&(const std::string& id)>;

// Opens an encrypted file. Ignores what follows the last line end, which a crash has torn. Throws
// DataError that names `origin`, the line, and what was done to it.
OpenedText open_sealed_text(std::string_view file, const std::string& name, const FindDataKey& find,
                            const std::string& origin);

// Returns PREVIOUS for a section that follows this line; "" if it follows none.
std::string digest_of_line(std::string_view last_line);

}  // namespace trireme
