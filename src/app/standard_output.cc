#include "src/app/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {

namespace {
using Handler = nlohmann::ordered_json::error_handler_t;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, Handler::replace);
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, Handler::replace);
}

void print_json(const nlohmann::ordered_json& json) { fmt::print("{}\n", json_text(json)); }

void flush_standard_output() {
  errno = 0;
  // The error flag stays up when an earlier write has failed and this one has nothing left to do.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw IoError(fmt::format("cannot write to standard output: {}",
                              errno != 0 ? std::strerror(errno) : "an earlier write failed"));
  }
}

}  // namespace trireme
