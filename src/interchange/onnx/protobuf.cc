#include "src/interchange/onnx/protobuf.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

static_assert(std::endian::native == std::endian::little, "the encoding is little-endian");

// Wire types.
constexpr int kVarint = 0;
constexpr int kLength = 2;
constexpr int kFixed32 = 5;

constexpr std::int64_t kMostField = (1 << 29) - 1;
constexpr int kBitsOfByte = 7;  // of a varint
constexpr unsigned kMore = 0x80;

// Takes a number from the front.
std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += kBitsOfByte) {
    if (rest.empty()) {
      throw DataError("a number ends early");
    }
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & ~kMore) << shift;
    if ((byte & kMore) == 0) {
      return value;
    }
  }
  throw DataError("a number has more than 64 bits");
}

std::string_view take(std::string_view& rest, std::uint64_t bytes) {
  if (bytes > rest.size()) {
    throw DataError(fmt::format("a field of {} bytes where {} follow", bytes, rest.size()));
  }
  const std::string_view part = rest.substr(0, static_cast<std::size_t>(bytes));
  rest.remove_prefix(part.size());
  return part;
}

ProtoField take_field(std::string_view& rest) {
  const std::uint64_t key = take_varint(rest);
  const std::uint64_t number = key >> 3;
  if (number < 1 || number > kMostField) {
    throw DataError(fmt::format("a field has the number {}", number));
  }
  ProtoField field{.number = static_cast<int>(number)};
  switch (static_cast<int>(key & 7)) {
    case kVarint:
      field.value = static_cast<std::int64_t>(take_varint(rest));
      return field;
    case kLength:
      field.kind = ProtoField::Kind::text;
      field.text = take(rest, take_varint(rest));
      return field;
    case kFixed32:
      field.kind = ProtoField::Kind::real;
      std::memcpy(&field.real, take(rest, sizeof field.real).data(), sizeof field.real);
      return field;
    default:
      throw DataError(fmt::format("field {} is of an unknown kind", number));
  }
}

}  // namespace

void ProtoMessage::varint(std::uint64_t value) {
  for (; value >= kMore; value >>= kBitsOfByte) {
    bytes_ += static_cast<char>(value | kMore);
  }
  bytes_ += static_cast<char>(value);
}

void ProtoMessage::key(int field, int wire) {
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(wire));
}

void ProtoMessage::number(int field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void ProtoMessage::real(int field, float value) {
  key(field, kFixed32);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ProtoMessage::text(int field, std::string_view value) {
  key(field, kLength);
  varint(value.size());
  bytes_ += value;
}

std::vector<ProtoField> read_fields(std::string_view bytes) {
  std::vector<ProtoField> fields;
  while (!bytes.empty()) {
    fields.push_back(take_field(bytes));
  }
  return fields;
}

std::int64_t number_of(const ProtoField& field, const char* what) {
  if (field.kind != ProtoField::Kind::number) {
    throw DataError(fmt::format("{} is not a number", what));
  }
  return field.value;
}

std::string_view text_of(const ProtoField& field, const char* what) {
  if (field.kind != ProtoField::Kind::text) {
    throw DataError(fmt::format("{} is not a text or message", what));
  }
  return field.text;
}

}  // namespace trireme
