#include "src/base/data_error_in.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(DataErrorIn, SaysWhereInOneLine) {
  const DataError error = data_error_in("a/b.json", DataError("tensor 'x\ny\x1b': no shape"));
  EXPECT_STREQ(error.what(), "a/b.json: tensor 'x\\ny\\x1b': no shape");
}

TEST(DataErrorIn, SaysWhereOnce) {
  for (const char* const what : {"a/b.json is a FIFO", "a/b.json: no JSON"}) {
    EXPECT_STREQ(data_error_in("a/b.json", DataError(what)).what(), what);
  }
  EXPECT_STREQ(data_error_in("a", DataError("a/b.json is a FIFO")).what(), "a: a/b.json is a FIFO");
}

}  // namespace
}  // namespace trireme
