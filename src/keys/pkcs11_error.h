// Turns the results of PKCS#11 functions (CK_RV) into errors. Every such result is checked here, or
// is an expected outcome that the caller looks at.
#pragma once

#include <string>
#include <string_view>

#include <p11-kit/pkcs11.h>

namespace trireme {

// Returns such as "CKR_PIN_INCORRECT", or "error 0x80000001" for what the standard does not name.
std::string result_text(CK_RV result);

// Returns whether the session, the login or the token has gone away, or the session is in the state
// of an earlier failure, so that logging in once more may help.
bool is_lost(CK_RV result);
// Returns whether C_Decrypt says that the text was changed or has another key. Modules use
// different results for this.
bool is_refused_text(CK_RV result);

// Returns whether C_Login says that the PIN must not be tried again.
bool is_refused_pin(CK_RV result);

// Throws unless the result is CKR_OK: PolicyError if the token refuses, ResourceError for lack of
// memory on this machine, and DeviceError if the token has gone away or failed. what: what was
// tried and where, such as "token 'x': cannot log in".
void pkcs11_check(CK_RV result, std::string_view what);

}  // namespace trireme
