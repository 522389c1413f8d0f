// Returns the message of an exception, for tests that check its text.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace trireme {

// Fails the test if nothing of that class is thrown.
template <class Exception, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace trireme
