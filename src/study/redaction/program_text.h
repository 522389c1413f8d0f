// Tells statements and types of programs from assignments. Pure functions; all places are offsets
// in bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme {

// Returns whether the name at `begin`, behind which the sign at `sign` stands, belongs to the first
// line of a loop or a condition, as in "for token in tokens: " and "if token == eos:", or to a
// condition of a shell such as "${DB_PASS:?unset}".
bool is_statement(std::string_view text, std::size_t begin, std::size_t sign);

// Returns whether the name at `begin` is that of a loop, as in "for token in tokens: ".
bool is_loop_variable(std::string_view text, std::size_t begin);

// Returns whether a type such as "str" stands directly behind the colon at `colon`, as in the names
// of columns in "user,password:str,loss".
bool is_typed(std::string_view text, std::size_t colon);

}  // namespace trireme
