// Splits the lines of tables into fields. Pure functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

inline constexpr std::size_t kLongestHeader = 4096;  // bytes of a header, and of a pair
inline constexpr char kAlignedColumns = ' ';  // separator of columns with two blanks between them
inline constexpr int kMostOddLines = 8;       // in a row that do not end a table

struct TableField {
  std::size_t begin = 0, end = 0;
};

// Returns whether a separator is one that sentences have, too.
bool is_list_sign(char separator);

// Returns the field without the double quotes around it.
std::string unquoted(std::string_view field);
// Returns the name of a column as one word, or as it is if it is none.
std::string column_name(std::string_view field);
// Does the same, but takes all other signs in quotes, too, for signs between the words of a name,
// and no type behind a colon.
std::string header_name(std::string_view field);
bool is_column_word(const std::string& name);

// Returns the line at `at`, which must be the start of a line, without its end.
TableField table_line(std::string_view text, std::size_t at);
// Returns the start of the line behind the line end at `end`, at most text.size().
std::size_t behind_line(std::string_view text, std::size_t end);
// Returns whether a line only separates the header of a table from its rows.
bool is_ruler(std::string_view line);

// Returns the end of the field at `at`. Those that begin with a double quote may have any character
// in them.
std::size_t end_of_field(std::string_view text, std::size_t at, char separator);
// Returns the place behind a field in quotes with which a line begins, which may end on another
// line, and behind the blanks that follow it; or the begin of the line.
std::size_t behind_quoted_field(std::string_view text, const TableField& line);
// Returns the first `most` fields and one more of a line of aligned columns, between which there
// are so many blanks.
std::vector<TableField> aligned_fields(std::string_view text, TableField line, std::size_t blanks,
                                       std::size_t most);
// Returns the first `most` fields and one more of a line between separators, without the blanks
// around them. line.end becomes the end of a quoted field's line.
std::vector<TableField> separated_fields(std::string_view text, TableField& line, char separator,
                                         std::size_t most);

}  // namespace trireme
