// The slow variant for other processors: each switch is a system call.
#include "src/device/sim/context.h"

#include <cstdlib>

#include <ucontext.h>

namespace sim {

// The ucontext_t of a suspended context lies on its own stack, that of a new one at the lowest
// address of its stack.
Context make_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  auto* context = new (stack) ucontext_t;
  if (::getcontext(context) != 0) {
    std::abort();
  }
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  ::makecontext(context, entry, 0);
  return context;
}

}  // namespace sim

void sim_switch_context(sim::Context* from, sim::Context to) {
  ucontext_t own;
  *from = &own;
  ::swapcontext(&own, static_cast<ucontext_t*>(to));
}
