#include "src/base/temporary_folder.h"

#include <cstdlib>

#include "src/base/error.h"

namespace trireme {

std::filesystem::path temporary_folder() {
  const char* const variable = std::getenv("TMPDIR");
  const std::filesystem::path folder = variable == nullptr || *variable == '\0' ? "/tmp" : variable;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw NotFound(fmt::format("TMPDIR is {}, which is not a folder: set it to an existing one",
                               folder.string()));
  }
  return folder;
}

}  // namespace trireme
