// Knows the columns of a table by its header, and finds their fields in its rows. A value; all
// places are offsets in bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/study/redaction/table_fields.h"

namespace trireme {

struct TableCell {
  TableField field;
  std::size_t column = 0;
};

class TableColumns {
 public:
  // Reads a line as the header of a table. Returns nothing if it is none, if it names no secret, or
  // if no row follows it. line.end becomes the end of a quoted field's line. above: the line above
  // it.
  static std::optional<TableColumns> of_header(std::string_view text, TableField& line,
                                               TableField above);

  // Returns the cells of a line, or none if it is no row. line.end becomes the end of a quoted
  // field's line. resumed: other lines stand between it and the row before; then it must be like
  // all rows so far.
  std::vector<TableCell> row(std::string_view text, TableField& line, bool resumed);

  // Returns whether a line of as many words as there are columns is no row, because all rows so far
  // have numbers where it has words.
  bool is_other_header(std::string_view text, TableField line) const;

  // Returns whether all names are such that a row hardly has them as its values.
  bool has_plain_names() const;
  const std::string& name(std::size_t column) const { return names_[column]; }

 private:
  explicit TableColumns(char separator) : separator_(separator) {}

  bool take_names(std::string_view text, TableField& line);
  bool is_entry(std::string_view text, TableField above) const;
  bool precedes_row(std::string_view text, TableField line);
  std::vector<TableCell> cells_by_place(std::string_view text, TableField line,
                                        const std::vector<TableField>& fields) const;
  bool is_in_line(std::string_view text, std::size_t begin,
                  const std::vector<TableField>& fields) const;
  bool is_like_rows(std::string_view text, const std::vector<TableField>& fields, bool loose,
                    bool in_line) const;
  void learn(std::string_view text, const std::vector<TableField>& fields, bool loose,
             bool in_line);

  char separator_;
  std::vector<std::string> names_;
  std::vector<bool> secrets_;       // by column: whether its name is a secret's
  std::vector<TableField> places_;  // of the names, in characters from the start of the line
  bool loose_ = false;              // whether a row has blanks where others have none
  bool in_line_ = true;             // whether the fields of all rows stand below their names
  std::vector<bool> numbers_;       // by column: whether a row has a number there
  std::vector<bool> words_;         // by column: whether a row has something else there
};

// Returns the two separators that a line may have: the first sign, and blanks.
std::array<char, 2> table_separators(std::string_view text, const TableField& line);

}  // namespace trireme
