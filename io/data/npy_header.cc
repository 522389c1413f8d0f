#include "io/data/npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 32;

// NpyReader parses one header. The dictionary is a literal with three keys in any order.
class NpyReader {
 public:
  NpyReader(std::string_view head, const std::string& name) : head_(head), name_(name) {}

  NpyHeader read() {
    const std::size_t begin = read_preamble();
    rest_ = head_.substr(begin, static_cast<std::size_t>(header_.data_offset) - begin);
    expect('{');
    std::set<std::string> keys;
    while (!take('}')) {
      const std::string key = text();
      if (!keys.insert(key).second) {
        fail(fmt::format("the header has '{}' twice", key));
      }
      expect(':');
      read_value(key);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty() || keys.size() != 3) {
      fail("the header is not a dictionary of 'descr', 'fortran_order' and 'shape'");
    }
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", name_, what));
  }

  // Returns where the dictionary begins.
  std::size_t read_preamble() {
    if (head_.size() < 10 || !head_.starts_with(kNpyMagic)) {
      fail("this is not an array of NumPy: it does not begin with \\x93NUMPY");
    }
    const int major = head_[6];
    if (major < 1 || major > 3) {
      fail(fmt::format("the version of the format is {}, and 1 to 3 are known", major));
    }
    const std::size_t begin = major == 1 ? 10 : 12;
    std::uint32_t length = 0;
    if (head_.size() >= begin) {
      std::memcpy(&length, head_.data() + 8, begin - 8);
    }
    if (head_.size() < begin || length > head_.size() - begin) {
      fail(fmt::format("the header claims {} bytes, which are not there or more than {}", length,
                       kMostNpyHeader));
    }
    header_.data_offset = static_cast<std::int64_t>(begin + length);
    return begin;
  }

  void read_value(const std::string& key) {
    if (key == "descr") {
      read_type(text());
    } else if (key == "fortran_order") {
      header_.is_column_major = take("True");
      if (!header_.is_column_major && !take("False")) {
        fail("the header's 'fortran_order' is neither True nor False");
      }
    } else if (key == "shape") {
      read_shape();
    } else {
      fail(fmt::format("the header has the unknown key '{:.40}'", key));
    }
  }

  void read_type(const std::string& descr) {
    const bool is_known =
        descr.size() == 3 && (descr[1] == 'u' || descr[1] == 'i') &&
        std::string_view("1248").find(descr[2]) != std::string_view::npos &&
        (descr[0] == '<' || descr[0] == '>' || (descr[0] == '|' && descr[2] == '1'));
    if (!is_known) {
      fail(
          fmt::format("the elements have the type '{:.40}': expected integers, such as '<u2' or "
                      "'<i4'",
                      descr));
    }
    header_.type = {descr[2] - '0', descr[1] == 'i', descr[0] == '>'};
  }

  void read_shape() {
    expect('(');
    while (!take(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const char* const end = rest_.data() + rest_.size();
      const auto [at, code] = std::from_chars(rest_.data(), end, size);
      if (code != std::errc() || size < 0 || header_.shape.size() == kMostDimensions) {
        fail("the shape is not a list of up to 32 sizes");
      }
      rest_.remove_prefix(static_cast<std::size_t>(at - rest_.data()));
      header_.shape.push_back(size);
      if (!take(',')) {
        expect(')');
        if (header_.shape.size() == 1) {
          fail("the shape is a number in parentheses, and not a tuple such as (4,)");
        }
        break;
      }
    }
  }

  // Reads a text in single or double quotes, without escapes.
  std::string text() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end =
        quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string::npos;
    if (end == std::string::npos) {
      fail("the header is not a dictionary of 'descr', 'fortran_order' and 'shape'");
    }
    std::string found(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return found;
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  bool take(std::string_view word) {
    skip_blanks();
    const bool found = rest_.starts_with(word);
    rest_.remove_prefix(found ? word.size() : 0);
    return found;
  }
  bool take(char mark) { return take(std::string_view(&mark, 1)); }
  void expect(char mark) {
    if (!take(mark)) {
      fail(fmt::format("the header has no '{}' where one belongs", mark));
    }
  }

  std::string_view head_;
  const std::string& name_;
  std::string_view rest_;
  NpyHeader header_;
};

// Returns nothing if the number does not fit.
std::optional<std::int64_t> product(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(elements, size, &elements)) {
      return std::nullopt;
    }
  }
  return elements;
}

}  // namespace

std::int64_t NpyHeader::elements() const { return product(shape).value_or(-1); }

NpyHeader parse_npy_header(std::string_view head, std::int64_t file_bytes,
                           const std::string& name) {
  NpyHeader header = NpyReader(head, name).read();
  const std::optional<std::int64_t> elements = product(header.shape);
  const std::int64_t there = file_bytes - header.data_offset;
  if (!elements || there < 0 || there % header.type.bytes != 0 ||
      there / header.type.bytes != *elements) {
    throw DataError(fmt::format(
        "{}: the header claims elements of {} bytes that are not the {} bytes behind it: the file "
        "is cut off, or was written to by another program",
        name, header.type.bytes, there));
  }
  return header;
}

std::string npy_header_text(std::int64_t elements, IntegerType type) {
  std::string dictionary =
      fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({},), }}",
                  type.is_big_endian ? '>' : '<', type.is_signed ? 'i' : 'u', type.bytes, elements);
  const std::size_t preamble = kNpyMagic.size() + 2 + 2;
  constexpr auto kWhole = static_cast<std::size_t>(kNpyHeaderBytes);
  check(preamble + dictionary.size() < kWhole, "the header has room for the dictionary");
  dictionary.append(kWhole - preamble - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string text(kNpyMagic);
  text += '\1';
  text += '\0';
  text += static_cast<char>(dictionary.size() & 0xFF);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}

}  // namespace trireme
