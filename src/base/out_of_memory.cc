#include "src/base/out_of_memory.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <typeinfo>

#include <cxxabi.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

std::terminate_handler handler_before = nullptr;

[[noreturn]] void end() {
  const std::type_info* error = abi::__cxa_current_exception_type();
  if (error != nullptr && *error == typeid(std::bad_alloc)) {
    constexpr std::string_view words =
        "trireme: out of memory, even for a complete report: raise the limits of this process "
        "(ulimit -v and -d) or of its job, or use fewer ranks on this host\n";
    (void)!::write(STDERR_FILENO, words.data(), words.size());
    ::_exit(static_cast<int>(ExitCode::device));
  }
  handler_before();
  std::abort();
}

}  // namespace

void end_with_words_without_memory() { handler_before = std::set_terminate(end); }

}  // namespace trireme
