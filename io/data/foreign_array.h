// ForeignArray is a one-dimensional array of integers in a file of another program, which is not
// trusted. For one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "io/h5/h5_integers.h"
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

// H5Array is a dataset of an HDF5 file.
class H5Array final : public ForeignArray {
 public:
  explicit H5Array(H5Integers integers) : integers_(std::move(integers)) {}

  std::int64_t size() const override { return integers_.size(); }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override {
    integers_.read(first, count, to);
  }

 private:
  H5Integers integers_;
};

// The type of the elements of a plain array.
struct IntegerType {
  int bytes = 0;  // 1, 2, 4 or 8
  bool is_signed = false;
  bool is_big_endian = false;
  friend bool operator==(const IntegerType&, const IntegerType&) = default;
};

// PlainArray is an array whose elements lie one after another in a file.
class PlainArray final : public ForeignArray {
 public:
  // Borrows the file. offset: of the first element. Reading elements that the file lacks throws
  // DataError.
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

// ColumnMajorMatrix is a matrix [rows, columns] whose columns lie one after another in an array, as
// an array of its rows. Reading n elements takes a read of the file for each of up to n columns.
class ColumnMajorMatrix final : public ForeignArray {
 public:
  // elements: [columns x rows].
  ColumnMajorMatrix(PlainArray elements, std::int64_t rows, std::int64_t columns)
      : elements_(std::move(elements)), rows_(rows), columns_(columns) {}

  std::int64_t size() const override { return rows_ * columns_; }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override;

 private:
  PlainArray elements_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<std::int64_t> column_;
};

// EqualEnds is the array 0, step, 2 step ... of `count` elements: the ends of equal documents.
class EqualEnds final : public ForeignArray {
 public:
  EqualEnds(std::int64_t step, std::int64_t count) : step_(step), count_(count) {}

  std::int64_t size() const override { return count_; }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) override {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = (first + i) * step_;
    }
  }

 private:
  std::int64_t step_;
  std::int64_t count_;
};

}  // namespace trireme
