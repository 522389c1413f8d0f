#include "io/chat/jinja_budget.h"

#include "src/base/error.h"

namespace trireme {

void JinjaBudget::fail() {
  throw DataError("the template takes too many steps or too much memory for this conversation");
}

}  // namespace trireme
