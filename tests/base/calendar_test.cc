#include "src/base/calendar.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Calendar, HasOnlyDaysThatThereAre) {
  for (const char* const day :
       {"2026-01-31", "2028-02-29", "2000-02-29", "0000-01-01", "9999-12-31"}) {
    EXPECT_TRUE(is_day(day)) << day;
  }
  for (const char* const day : {"", "2026-02-29", "2026-02-31", "2100-02-29", "2026-04-31",
                                "2026-13-01", "2026-00-01", "2026-01-00", "2026-1-01", "2026-01-1",
                                "2026/01/01", "2026-01-01T", " 2026-01-01", "2026-01-0x"}) {
    EXPECT_FALSE(is_day(day)) << day;
  }
}

TEST(Calendar, TimesAreInUtc) {
  EXPECT_TRUE(is_utc_time("2026-03-01T00:00:00Z"));
  EXPECT_TRUE(is_utc_time("2026-03-01T23:59:59Z"));
  for (const char* const time :
       {"", "2026-03-01", "2026-02-31T12:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:60Z", "2026-03-01 12:00:00Z", "2026-03-01T12:00:00", "2026-03-01T12:00Z",
        "2026-03-01T12:00:00ZZ", "2026-03-01T12:00:00+01:00", "2026-03-01T-1:00:00Z"}) {
    EXPECT_FALSE(is_utc_time(time)) << time;
  }
}

}  // namespace
}  // namespace trireme
