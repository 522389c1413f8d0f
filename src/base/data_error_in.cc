#include "src/base/data_error_in.h"

#include "src/base/printable.h"

namespace trireme {

DataError data_error_in(const std::string& origin, const Error& error) {
  const std::string where = printable(origin);
  const std::string what = printable(error.what());
  const bool names_it =
      !where.empty() && (what.starts_with(where + ": ") || what.starts_with(where + " "));
  return DataError(names_it ? what : fmt::format("{}: {}", where, what));
}

}  // namespace trireme
