// Finds the cells of a table's row by where they stand below its header. Pure functions; all places
// are offsets in bytes from the start of the line.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "src/study/redaction/table_fields.h"

namespace trireme {

// Returns the places of the columns that a line of dashes with single blanks between them gives, as
// Slurm prints it, or none if it is no such line.
std::vector<TableField> columns_of_ruler(std::string_view line);

// Returns the cells of a line at these places, or none if something stands between them or if the
// line is empty.
std::vector<std::string_view> cells_at(std::string_view line,
                                       const std::vector<TableField>& columns);

struct CellsBelow {
  std::vector<std::string_view> cells;  // "" where nothing stands below a name; or none at all
  bool sure = false;                    // whether each of the wanted cells begins or ends there
};

// Returns the words that stand below the names of columns, if most columns have a word that begins
// or ends where their name does, or if all have a word, and the wanted ones have it there; in a
// line without two blanks in a row, all must have it there. wanted: by column, whether its cell
// will be used.
CellsBelow cells_below(std::string_view line, const std::vector<TableField>& names,
                       const std::vector<bool>& wanted);

}  // namespace trireme
