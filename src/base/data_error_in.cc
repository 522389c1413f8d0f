#include "src/base/data_error_in.h"

#include "src/base/printable.h"

namespace trireme {

DataError data_error_in(const std::string& origin, const Error& error) {
  return DataError(fmt::format("{}: {}", printable(origin), printable(error.what())));
}

}  // namespace trireme
