// Sets an option of AddressSanitizer, keeps its search for leaks quiet about one library, and is
// linked into every program of the preset `debug`.
//
// hwloc's plugin for PCI devices asks libpciaccess for the names of devices. libpciaccess keeps the
// table of names in a static variable until the process ends. But hwloc unloads its plugins when a
// topology is destroyed, and libpciaccess with them; the next topology loads it again, and it makes
// another table. Each lost table counts as a leak of 1016 bytes by an unknown module, which no
// suppression can name. Here, libpciaccess stays loaded, so that there is one table, which is in
// use.
#include <dlfcn.h>

namespace {

// The library is absent where hwloc has no plugin that needs it.
[[maybe_unused]] void* const pciaccess = ::dlopen("libpciaccess.so.0", RTLD_LAZY | RTLD_NODELETE);

}  // namespace

// The program reports memory that it cannot get, and tests ask for too much. The sanitizer must let
// malloc fail then: by default, it ends a program that asks for more than 1 TiB. A program may have
// options of its own. ASAN_OPTIONS overrides them.
extern "C" [[gnu::weak]] const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
