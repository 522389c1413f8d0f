#include "src/app/command/last_act.h"

#include <utility>

namespace trireme {
namespace {

std::function<void()>& last_act() {
  static std::function<void()> act;
  return act;
}

}  // namespace

void set_last_act(std::function<void()> act) { last_act() = std::move(act); }

void do_last_act() {
  if (last_act()) {
    last_act()();
  }
}

}  // namespace trireme
