// Lists all fuzz targets by name. CMake generates the table (fuzz_table.cc.in).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme {

struct FuzzTarget {
  std::string name;
  int (*run)(const std::uint8_t* data, std::size_t bytes);
};
const std::vector<FuzzTarget>& fuzz_targets();

}  // namespace trireme
