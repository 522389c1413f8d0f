#include "src/app/command/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {

namespace {

using Handler = nlohmann::ordered_json::error_handler_t;

bool on_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

void write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print(const nlohmann::ordered_json& json, int indent) {
  write(json.dump(indent, ' ', on_terminal(), Handler::replace) + "\n");
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, Handler::replace);
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, Handler::replace);
}

void print_json(const nlohmann::ordered_json& json) { print(json, 2); }

void print_json_line(const nlohmann::ordered_json& json) { print(json, -1); }

TextPrinter::TextPrinter() {
  if (on_terminal()) {
    escaped_.emplace();
  }
}

void TextPrinter::print(std::string_view piece) {
  write(escaped_ ? escaped_->add(piece) : std::string(piece));
}

void TextPrinter::end() { write((escaped_ ? escaped_->rest() : std::string()) + "\n"); }

void flush_standard_output() {
  errno = 0;
  // The error flag remains set if an earlier write has failed and this flush has nothing to do.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw IoError(fmt::format("cannot write to standard output: {}",
                              errno != 0 ? std::strerror(errno) : "an earlier write failed"));
  }
}

}  // namespace trireme
