// Reads and writes messages of Protocol Buffers, field by field (protobuf.dev, "Encoding").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// ProtoMessage collects the fields of one message.
class ProtoMessage {
 public:
  void number(int field, std::int64_t value);
  void real(int field, float value);
  void text(int field, std::string_view value);
  void message(int field, const ProtoMessage& value) { text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, int wire);

  std::string bytes_;
};

struct ProtoField {
  int number = 0;
  enum class Kind : std::uint8_t { number, real, text } kind = Kind::number;
  std::int64_t value = 0;  // of a number
  float real = 0;
  std::string_view text = {};  // of a text or message: a part of what was read
};

// Throws DataError if the bytes are not a message of such fields.
std::vector<ProtoField> read_fields(std::string_view bytes);

// Throw DataError if a field is of another kind. `what` names it in the message.
std::int64_t number_of(const ProtoField& field, const char* what);
std::string_view text_of(const ProtoField& field, const char* what);

}  // namespace trireme
