#include "io/h5/h5_check.h"

#include <cerrno>
#include <charconv>
#include <mutex>
#include <string>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

// Stack holds HDF5's error stack, outermost call first, and the errno of the innermost entry that
// has one, or 0.
struct Stack {
  std::string words;
  int code = 0;
};

// HDF5 reports errno only inside the description: "..., errno = 28, error message = '...'".
int errno_in(std::string_view text) {
  constexpr std::string_view kMark = "errno = ";
  const auto at = text.find(kMark);
  int code = 0;
  if (at != std::string_view::npos) {
    const char* begin = text.data() + at + kMark.size();
    std::from_chars(begin, text.data() + text.size(), code);
  }
  return code;
}

herr_t collect(unsigned /*depth*/, const H5E_error2_t* entry, void* to) {
  Stack& stack = *static_cast<Stack*>(to);
  const std::string_view text = entry->desc != nullptr ? entry->desc : "no description";
  stack.words += fmt::format("{}{}: {}", stack.words.empty() ? "" : "; ",
                             entry->func_name != nullptr ? entry->func_name : "?", text);
  const int code = errno_in(text);
  stack.code = code != 0 ? code : stack.code;
  return 0;
}

std::string hint(const Stack& stack) {
  if (stack.words.find(" lock ") == std::string::npos) {
    return "";
  }
  return "; if the file system refuses locks (NFS, Lustre), set HDF5_USE_FILE_LOCKING=FALSE";
}

}  // namespace

void h5_prepare() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  static std::once_flag once;
  std::call_once(once, [] {
    h5_check(H5PLset_loading_state(0), "disable plugins in", "libhdf5");
    h5_check(H5Lunregister(H5L_TYPE_EXTERNAL), "disable external links in", "libhdf5");
  });
}

void h5_throw(std::string_view operation, const std::filesystem::path& path) {
  Stack stack;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect, &stack);
  H5Eclear2(H5E_DEFAULT);
  const std::string words =
      fmt::format("HDF5 cannot {} {}: {}{}", operation, path.string(), stack.words, hint(stack));
  if (stack.code == EACCES || stack.code == EPERM) {
    throw PolicyError(words);
  }
  if (stack.code != 0) {
    throw IoError(words);
  }
  throw DataError(words);
}

}  // namespace trireme
