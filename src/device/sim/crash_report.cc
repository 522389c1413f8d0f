#include "src/device/sim/crash_report.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <signal.h>
#include <unistd.h>

#include "src/device/sim/block.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/shared_memory.h"

namespace sim {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

std::array<struct sigaction, kSignals.size()> earlier_actions;
volatile sig_atomic_t abort_is_explained = 0;

std::string_view cause_in_kernel(int signal, const void* address) {
  if (signal == SIGABRT) {
    return "the kernel called abort()";
  }
  if (signal == SIGFPE) {
    return "division by zero";
  }
  if (stack_overflows_at(address)) {
    return "the thread's local variables need too much memory";
  }
  if (is_behind_shared(address)) {
    return "access behind the end of the dynamic shared memory";
  }
  return machine().memory_of(address) != nullptr
             ? "access to device memory failed"
             : "access to an address that is not the device's memory";
}

void write_report(int signal, const void* address) {
  char text[300];
  int length = 0;
  if (const RunningThread at = running_thread(); at.in_kernel) {
    const std::string_view cause = cause_in_kernel(signal, address);
    length =
        std::snprintf(text, sizeof text,
                      "simulated device: block (%u, %u, %u), thread (%u, %u, %u): %.*s "
                      "(%s, address %p)\n",
                      at.block.x, at.block.y, at.block.z, at.thread.x, at.thread.y, at.thread.z,
                      static_cast<int>(cause.size()), cause.data(), ::strsignal(signal), address);
  } else if (signal == SIGSEGV && machine().memory_of(address) != nullptr) {
    length =
        std::snprintf(text, sizeof text,
                      "simulated device: code of the host touched device memory at %p\n", address);
  }
  if (length > 0 && ::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
    return;  // nobody listens
  }
}

void on_signal(int signal, siginfo_t* details, void*) {
  if (signal != SIGABRT || abort_is_explained == 0) {
    write_report(signal, signal == SIGABRT ? nullptr : details->si_addr);
  }
  for (std::size_t at = 0; at < kSignals.size(); ++at) {
    if (kSignals[at] == signal) {
      ::sigaction(signal, &earlier_actions[at], nullptr);
    }
  }
  // The instruction that failed is executed again; abort() raises its signal again by itself.
  if (details->si_code <= 0 && signal != SIGABRT) {
    ::raise(signal);  // sent by a process, not caused by an instruction
  }
}

}  // namespace

void report_crashes() {
  for (std::size_t at = 0; at < kSignals.size(); ++at) {
    struct sigaction action = {};
    action.sa_sigaction = &on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(kSignals[at], &action, &earlier_actions[at]);
  }
}

void use_signal_stack() {
  static std::array<char, 64 << 10> memory;
  stack_t stack = {};
  if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0) {
    return;  // a sanitizer has provided one
  }
  stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ::sigaltstack(&stack, nullptr);
}

void report_no_abort() { abort_is_explained = 1; }

}  // namespace sim
