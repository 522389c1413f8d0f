// Reads and writes the headers of NumPy's .npy files (NEP 1): a magic number and a version, the
// length of the header, and a literal of a Python dictionary, padded so that the array begins at a
// multiple of 64 bytes:
//
//   "\x93NUMPY" | u8 major | u8 minor | u16 or, from version 2 on, u32 length |
//   {'descr': '<u2', 'fortran_order': False, 'shape': (3,), }   ...\n | the array
//
// Only arrays of integers are read; arrays of objects would be programs. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/foreign_array.h"

namespace trireme {

struct NpyHeader {
  IntegerType type;
  bool is_column_major = false;  // Fortran's order
  std::vector<std::int64_t> shape;
  std::int64_t data_offset = 0;

  // Returns the number of elements; 1 for a shape without dimensions.
  std::int64_t elements() const;
};

// The most bytes from the beginning of a file that parse_npy_header() looks at.
inline constexpr std::int64_t kMostNpyHeader = std::int64_t{1} << 16;

// head: the first bytes of the file, all or kMostNpyHeader of them. file_bytes: its size. Throws
// DataError that begins with `name` for anything but a header of versions 1 to 3, an array of
// integers, and exactly its elements behind it.
NpyHeader parse_npy_header(std::string_view head, std::int64_t file_bytes, const std::string& name);

// Returns the header, of version 1, of a one-dimensional array.
std::string npy_header_text(std::int64_t elements, IntegerType type);
// Its size does not depend on the arguments.
inline constexpr std::int64_t kNpyHeaderBytes = 128;

}  // namespace trireme
