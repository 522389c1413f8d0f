#include "src/interchange/gguf.h"

#include <algorithm>
#include <cstring>

#include "io/checkpoint/names.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kMostDimensions = 4;
constexpr std::int64_t kMostName = 63;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

enum class ValueType : std::uint32_t { i32 = 5, u32 = 4, f32 = 6, flag = 7, text = 8, array = 9 };

class HeadWriter {
 public:
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void type(ValueType type) { number(static_cast<std::uint32_t>(type)); }
  void text(const std::string& value) {
    number<std::uint64_t>(value.size());
    out_ += value;
  }
  void operator()(std::uint32_t value) {
    type(ValueType::u32);
    number(value);
  }
  void operator()(float value) {
    type(ValueType::f32);
    number(value);
  }
  void operator()(bool value) {
    type(ValueType::flag);
    number<std::uint8_t>(value ? 1 : 0);
  }
  void operator()(const std::string& value) {
    type(ValueType::text);
    text(value);
  }
  void operator()(const std::vector<std::string>& values) {
    begin_array(ValueType::text, values.size());
    for (const std::string& value : values) {
      text(value);
    }
  }
  void operator()(const std::vector<std::int32_t>& values) { numbers(ValueType::i32, values); }
  void operator()(const std::vector<float>& values) { numbers(ValueType::f32, values); }
  void pad() { out_.resize(static_cast<std::size_t>(round_up(std::ssize(out_), kGgufAlignment))); }
  std::string& out() { return out_; }

 private:
  void begin_array(ValueType element, std::size_t count) {
    type(ValueType::array);
    type(element);
    number<std::uint64_t>(count);
  }
  template <class T>
  void numbers(ValueType element, const std::vector<T>& values) {
    begin_array(element, values.size());
    for (const T value : values) {
      number(value);
    }
  }
  std::string out_;
};

class HeadReader {
 public:
  explicit HeadReader(std::string_view text) : text_(text) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint64_t>())); }
  std::string_view take(std::uint64_t bytes) {
    if (bytes > text_.size() - at_) {
      throw DataError(fmt::format("it ends within its head, after byte {}", at_));
    }
    at_ += bytes;
    return text_.substr(at_ - bytes, bytes);
  }
  // Returns a count of things that take at least `least` bytes each.
  std::uint64_t count(std::uint64_t least) {
    const auto n = number<std::uint64_t>();
    if (n > (text_.size() - at_) / least) {
      throw DataError(fmt::format("a count of {} before byte {} is more than it can hold", n, at_));
    }
    return n;
  }
  std::int64_t at() const { return static_cast<std::int64_t>(at_); }

  GgufValue value() {
    const auto type = static_cast<ValueType>(number<std::uint32_t>());
    switch (type) {
      case ValueType::u32:
        return number<std::uint32_t>();
      case ValueType::f32:
        return number<float>();
      case ValueType::flag:
        return number<std::uint8_t>() != 0;
      case ValueType::text:
        return text();
      case ValueType::array:
        return array();
      case ValueType::i32:
        break;
    }
    throw DataError(
        fmt::format("a value of type {} before byte {}: files of this program have "
                    "none",
                    static_cast<std::uint32_t>(type), at_));
  }

 private:
  GgufValue array() {
    const auto element = static_cast<ValueType>(number<std::uint32_t>());
    if (element == ValueType::text) {
      std::vector<std::string> values(count(8));
      std::generate(values.begin(), values.end(), [this] { return text(); });
      return values;
    }
    if (element == ValueType::i32) {
      return numbers<std::int32_t>();
    }
    if (element == ValueType::f32) {
      return numbers<float>();
    }
    throw DataError(
        fmt::format("an array of type {} before byte {}: files of this program have "
                    "none",
                    static_cast<std::uint32_t>(element), at_));
  }

  template <class T>
  std::vector<T> numbers() {
    std::vector<T> values(count(sizeof(T)));
    std::generate(values.begin(), values.end(), [this] { return number<T>(); });
    return values;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

GgufTensor read_tensor(HeadReader& reader) {
  GgufTensor tensor;
  tensor.name = reader.text();
  const auto dimensions = reader.number<std::uint32_t>();
  if (tensor.name.empty() || std::ssize(tensor.name) > kMostName || dimensions < 1 ||
      dimensions > kMostDimensions) {
    throw DataError(fmt::format("tensor '{}' has a name of {} bytes and {} dimensions",
                                printable(tensor.name), tensor.name.size(), dimensions));
  }
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = static_cast<std::int64_t>(reader.number<std::uint64_t>());
    if (extent < 1 || extent > kMostExtent || elements > kMostExtent / extent) {
      throw DataError(fmt::format("tensor {} has an extent of {}", printable(tensor.name), extent));
    }
    elements *= extent;
    tensor.shape.insert(tensor.shape.begin(), extent);
  }
  const auto type = reader.number<std::uint32_t>();
  if (!is_known_type(type)) {
    throw DataError(fmt::format("tensor {} has the type {}, which this program does not have",
                                printable(tensor.name), type));
  }
  tensor.type = static_cast<GgufType>(type);
  if (tensor.shape.back() % block_elements(tensor.type) != 0) {
    throw DataError(fmt::format("tensor {} has rows of {}, not whole blocks of {}",
                                printable(tensor.name), tensor.shape.back(),
                                block_elements(tensor.type)));
  }
  tensor.offset = static_cast<std::int64_t>(reader.number<std::uint64_t>());
  return tensor;
}

}  // namespace

std::int64_t GgufTensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) {
    n *= extent;
  }
  return n;
}

std::string encode_gguf_head(GgufHead& head) {
  HeadWriter writer;
  writer.out() = "GGUF";
  writer.number(kVersion);
  writer.number<std::uint64_t>(head.tensors.size());
  writer.number<std::uint64_t>(head.values.size());
  for (const auto& [key, value] : head.values) {
    writer.text(key);
    std::visit(writer, value);
  }
  std::int64_t at = 0;
  for (GgufTensor& tensor : head.tensors) {
    check(std::ssize(tensor.name) <= kMostName, "ggml's names have at most 63 bytes");
    tensor.offset = at;
    at += round_up(tensor.bytes(), kGgufAlignment);
    writer.text(tensor.name);
    writer.number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      writer.number(static_cast<std::uint64_t>(*extent));
    }
    writer.number(static_cast<std::uint32_t>(tensor.type));
    writer.number(static_cast<std::uint64_t>(tensor.offset));
  }
  writer.pad();
  head.data_offset = std::ssize(writer.out());
  return std::move(writer.out());
}

GgufHead parse_gguf_head(std::string_view text, std::int64_t file_bytes) {
  HeadReader reader(text);
  if (reader.take(4) != "GGUF") {
    throw DataError("it does not begin with 'GGUF'");
  }
  if (const auto version = reader.number<std::uint32_t>(); version != kVersion) {
    throw DataError(fmt::format("it has version {}: this program reads version 3", version));
  }
  GgufHead head;
  const std::uint64_t tensors = reader.count(24);
  const std::uint64_t values = reader.count(13);
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key = reader.text();
    GgufValue value = reader.value();
    if (key.empty() || !head.values.try_emplace(key, std::move(value)).second) {
      throw DataError(fmt::format("the key '{}' is empty or occurs twice", printable(key)));
    }
  }
  std::int64_t at = 0;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    head.tensors.push_back(read_tensor(reader));
    const GgufTensor& tensor = head.tensors.back();
    if (tensor.offset != at) {
      throw DataError(fmt::format("tensor {} starts at byte {} instead of {}",
                                  printable(tensor.name), tensor.offset, at));
    }
    at += round_up(tensor.bytes(), kGgufAlignment);
    if (at > file_bytes) {
      throw DataError(fmt::format("tensor {} ends beyond the file", printable(tensor.name)));
    }
  }
  head.data_offset = round_up(reader.at(), kGgufAlignment);
  if (at != file_bytes - head.data_offset) {
    throw DataError(fmt::format("its tensors have {} bytes, but the file holds {} after its head",
                                at, file_bytes - head.data_offset));
  }
  return head;
}

}  // namespace trireme
