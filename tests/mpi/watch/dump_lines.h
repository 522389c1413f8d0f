// Reads every line of a flight recorder's dump strictly, for tests.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json_fields.h"

namespace trireme {

inline std::vector<nlohmann::json> dump_lines(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  EXPECT_TRUE(text.ends_with("\n"));
  std::istringstream stream(text);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(parse_json(line));
  }
  return lines;
}

}  // namespace trireme
