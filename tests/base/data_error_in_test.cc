#include "src/base/data_error_in.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(DataErrorIn, SaysWhereInOneLine) {
  const DataError error = data_error_in("a/b.json", DataError("tensor 'x\ny\x1b': no shape"));
  EXPECT_STREQ(error.what(), "a/b.json: tensor 'x\\ny\\x1b': no shape");
}

}  // namespace
}  // namespace trireme
