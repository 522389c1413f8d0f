// Makes the order of OpenMP's threads visible to ThreadSanitizer, and is linked into every program
// of the preset `tsan`. libgomp synchronizes with futexes that the sanitizer does not see: without
// this file, it would report each access to data that two regions share. The functions replace
// those of libgomp and call them. If the program uses another construct of OpenMP, that construct
// needs a function here; without one, the sanitizer reports races that are none.
//
// It also holds the sanitizer's options and suppressions, and one option of UCX, so that no
// environment variable is needed. TSAN_OPTIONS overrides the options.
#include <array>
#include <cstdlib>

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

namespace {

// A Region is one execution of a parallel region. The addresses of its members identify what
// happens before what: the region's start before each thread's work, that before the region's end,
// and the same at each barrier. A thread that has passed a barrier may reach the next one while
// others are still leaving the first, but not the one after it. Hence barriers use two addresses in
// turn.
struct Region {
  void (*work)(void*);
  void* data;
  char start = 0;
  char end = 0;
  std::array<char, 2> barriers{};
};

thread_local Region* region = nullptr;   // the innermost that the calling thread works in
thread_local unsigned barriers_met = 0;  // by the calling thread in that region

template <class Function>
Function* libgomp(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void work_in_region(void* argument) {
  auto* const mine = static_cast<Region*>(argument);
  __tsan_acquire(&mine->start);
  Region* const outer = region;
  const unsigned met_outside = barriers_met;
  region = mine;
  barriers_met = 0;
  mine->work(mine->data);
  region = outer;
  barriers_met = met_outside;
  __tsan_release(&mine->end);
}

void pass_barrier(void (*wait)()) {
  if (region == nullptr) {
    wait();
    return;
  }
  char* const barrier = &region->barriers[barriers_met++ % 2];
  __tsan_release(barrier);
  wait();
  __tsan_acquire(barrier);
}

}  // namespace

extern "C" {

void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags) {
  using Parallel = void(void (*)(void*), void*, unsigned, unsigned);
  static auto* const parallel = libgomp<Parallel>("GOMP_parallel");
  Region mine{work, data};
  __tsan_release(&mine.start);
  parallel(work_in_region, &mine, threads, flags);
  __tsan_acquire(&mine.end);
}

void GOMP_barrier() {
  static auto* const barrier = libgomp<void()>("GOMP_barrier");
  pass_barrier(barrier);
}

// The end of a loop without `nowait` is a barrier.
void GOMP_loop_end() {
  static auto* const loop_end = libgomp<void()>("GOMP_loop_end");
  pass_barrier(loop_end);
}

void GOMP_critical_name_start(void** lock) {
  static auto* const start = libgomp<void(void**)>("GOMP_critical_name_start");
  start(lock);
  __tsan_acquire(lock);
}

void GOMP_critical_name_end(void** lock) {
  static auto* const end = libgomp<void(void**)>("GOMP_critical_name_end");
  __tsan_release(lock);
  end(lock);
}

// The sanitizer's own exit code, 66, means NotFound here. It must remember more accesses than it
// does by default: it reports one whose stack it has forgotten even if a suppression names the
// library. The thread that watches MPI needs that, because it receives the messages of other
// threads, too. A request for too much memory must fail as it does without the sanitizer.
const char* __tsan_default_options() {
  return "allocator_may_return_null=1:exitcode=70:history_size=7:second_deadlock_stack=1";
}

// Names libraries that are built without the sanitizer. It sees their calls of memcpy, free and the
// like, but not the atomic operations that order these.
const char* __tsan_default_suppressions() {
  return "race:libmpi.so\n"
         "race:libopen-pal.so\n"
         "race:libopen-rte.so\n"
         "race:libpmix.so\n"
         "race:mca_\n"  // plugins of Open MPI
         "race:libevent\n"
         "race:libucp.so\n"
         "race:libuct.so\n"
         "race:libucs.so\n"
         "race:libdnnl.so\n"  // its cache of primitives, behind a lock and futures
         // takes two locks in one order when it adds processes, and in the other to remove some
         "deadlock:mca_btl_tcp.so\n";
}
}

namespace {

// UCX hooks madvise(), which a thread calls when the sanitizer has already forgotten it: the lock
// of the hook then crashes. UCX has read this variable by now, so the program starts itself again.
[[gnu::constructor]] void keep_ucx_from_hooking(int /*argc*/, char** argv, char** /*environment*/) {
  if (::getenv("UCX_MEM_EVENTS") == nullptr) {
    ::setenv("UCX_MEM_EVENTS", "no", 0);
    ::execv("/proc/self/exe", argv);
  }
}

}  // namespace
