// Finds subscripts in a text, as in cfg["db"]["password"] = "x". Pure functions; all places are
// offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trireme {

// An expression with subscripts to which a value is assigned.
struct Subscripted {
  std::size_t begin = 0;      // of the expression
  std::size_t operation = 0;  // where the operator begins
};

// Returns the expression in which the word at [begin, end) is a subscript, as in cfg["password"],
// params[:password], $ENV{PASSWORD} and ([password]=x), or that has subscripts behind the word, as
// in passwords[0], if an operator follows. "[password]: x" and "passwd[5]: x" are lines of logs.
std::optional<Subscripted> subscripted_at(std::string_view text, std::size_t begin,
                                          std::size_t end);

// Returns whether JSON at [begin, end), such as ["password"], is rather a subscript in a program.
bool is_subscript(std::string_view text, std::size_t begin, std::size_t end);

}  // namespace trireme
