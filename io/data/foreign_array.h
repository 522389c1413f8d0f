// ForeignArray is a one-dimensional array of integers in a file of another program, which is not
// trusted. For one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/file.h"

namespace trireme {

class ForeignArray {
 public:
  virtual ~ForeignArray() = default;
  virtual std::int64_t size() const = 0;
  // Reads elements [first, first + count), which must lie in the array. to: i64 [count]. A value
  // above the range of i64 is read as the largest i64.
  virtual void read(std::int64_t first, std::int64_t count, std::int64_t* to) = 0;
};

// The type of the elements of a plain array.
struct IntegerType {
  int bytes = 0;  // 1, 2, 4 or 8
  bool is_signed = false;
  friend bool operator==(const IntegerType&, const IntegerType&) = default;
};

// PlainArray is an array whose elements lie one after another in a file, little endian.
class PlainArray final : public ForeignArray {
 public:
  // Borrows the file. offset: of the first element. Precondition: the file has all elements.
  PlainArray(const File& file, std::int64_t offset, IntegerType type, std::int64_t elements)
      : file_(file), offset_(offset), type_(type), elements_(elements) {}

  std::int64_t size() const override { return elements_; }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override;

 private:
  const File& file_;
  std::int64_t offset_;
  IntegerType type_;
  std::int64_t elements_;
  std::vector<std::byte> raw_;
};

// ArrayInMemory is an array that has been read or computed.
class ArrayInMemory final : public ForeignArray {
 public:
  explicit ArrayInMemory(std::vector<std::int64_t> values) : values_(std::move(values)) {}

  std::int64_t size() const override { return std::ssize(values_); }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override;

 private:
  std::vector<std::int64_t> values_;
};

}  // namespace trireme
