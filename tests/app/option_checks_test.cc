// Tests the bounds of numbers on the command line, and the layout of --help.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/command/command_line.h"
#include "src/app/command/help_text.h"
#include "src/app/command/number_check.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Bounds {
  const char* name;
  Check check;
  std::vector<const char*> allowed;
  std::vector<const char*> refused;
};

TEST(OptionChecks, AcceptTheirBoundsAndNothingBeyond) {
  const std::vector<Bounds> all = {
      {"threads", thread_count(), {"1", "1024"}, {"0", "1025", "-1", ""}},
      {"counts",
       positive_count(),
       {"1", "2147483647"},
       {"0", "2147483648", "1e3", " 1", "1 ", "-0"}},
      {"seeds",
       any_seed(),
       {"0", "18446744073709551615"},
       {"-1", "18446744073709551616", "00", "+1", "0x1"}},
      {"integers", integer_within(-3, 3), {"-3", "0", "3"}, {"-4", "4", "-03", "0.5"}},
      {"large integers",
       integer_within(0, std::numeric_limits<std::int64_t>::max()),
       {"9223372036854775807"},
       {"9223372036854775808"}},
      {"numbers within", within(1.5, 100.0), {"1.5", "1e2", "99.99"}, {"1.49", "100.01", "nan"}},
      {"numbers from integers", within(1, 4), {"1", "4"}, {"0", "5", "4x", "inf"}},
      {"positive", positive_number(), {"1e-300", "1e300"}, {"0", "-1", "inf", "nan", "-nan"}},
      {"not negative", non_negative_number(), {"0", "-0", "1e300"}, {"-1e-300", "inf", "x", ""}}};
  for (const Bounds& bounds : all) {
    for (const char* text : bounds.allowed) {
      EXPECT_EQ(bounds.check.complaint(text), "") << bounds.name << ": " << text;
    }
    for (const char* text : bounds.refused) {
      EXPECT_THAT(bounds.check.complaint(text),
                  testing::StartsWith(std::string("'") + text + "' is not "))
          << bounds.name << ": " << text;
    }
  }
}

TEST(OptionChecks, ComplaintsStateTheBounds) {
  EXPECT_EQ(thread_count().complaint("0"), "'0' is not an integer from 1 to 1024");
  EXPECT_EQ(within(1.5, 2.25).complaint("3"), "'3' is not a number from 1.5 to 2.25");
  EXPECT_EQ(positive_number().complaint("0"), "'0' is not a number above 0");
  EXPECT_EQ(non_negative_number().complaint("-1"), "'-1' is not a number of at least 0");
  EXPECT_EQ(positive_number().complaint("1e999"),
            "'1e999' is too large or too small: give a number above 0");
}

TEST(OptionChecks, WordsAreListedAndTheNearestIsSuggested) {
  const Check check = one_of({"mpirun", "srun"});
  EXPECT_EQ(check.words, "mpirun|srun");
  EXPECT_EQ(check.complaint("srun"), "");
  EXPECT_EQ(check.complaint("mpiurn"),
            "'mpiurn' is not one of mpirun, srun; did you mean 'mpirun'?");
  EXPECT_EQ(one_of({"auto", "cpu"}).complaint("gpu"), "'gpu' is not one of auto, cpu");
  EXPECT_EQ(check.complaint("Q"), "'Q' is not one of mpirun, srun");
  EXPECT_NE(check.complaint(""), "");
  EXPECT_NE(check.complaint("mpirun|srun"), "");
}

class HelpText : public testing::Test {
 protected:
  CommandLine app_{"Does things.", "prog"};
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

// The description begins in column 26, or on its own line if the head needs column 25.
TEST_F(HelpText, DescriptionsBeginInOneColumn) {
  app_.add_option("-o,--out", text_, "Where").type_name("DIR");
  app_.add_option("--seventeen-chars", text_, "Fits").type_name("");
  app_.add_option("--eighteen-charact", text_, "Fits, too").type_name("");
  app_.add_flag("-q", flag_, "Quiet");
  EXPECT_EQ(help_text(app_),
            "Usage: prog [OPTION]...\n"
            "\n"
            "Does things.\n"
            "\n"
            "Options:\n"
            "  -h, --help              Print this help and exit\n"
            "  -o, --out DIR           Where\n"
            "      --seventeen-chars   Fits\n"
            "      --eighteen-charact  Fits, too\n"
            "  -q                      Quiet\n");
  CommandLine other("", "prog");
  other.add_option("--nineteen-characte", text_, "Below").type_name("");
  EXPECT_THAT(help_text(other),
              HasSubstr("      --nineteen-characte\n                          Below\n"));
}

TEST_F(HelpText, UsageNamesWhatIsRequired) {
  app_.add_option("-o,--out", text_, "").required().type_name("DIR");
  app_.add_option("--in", text_, "").required();
  app_.add_option("--free", text_, "");
  app_.add_option("FIRST", text_, "").required();
  app_.add_option("MORE", texts_, "");
  EXPECT_EQ(usage_arguments(app_), "[OPTION]... --out DIR --in TEXT FIRST [MORE]...");
  app_.usage("-- train CONFIG");
  EXPECT_EQ(usage_arguments(app_), "-- train CONFIG");
  EXPECT_THAT(help_text(app_),
              AllOf(testing::StartsWith("Usage: prog -- train CONFIG\n"),
                    HasSubstr("\nArguments:\n  FIRST "), HasSubstr("\n  MORE... ")));
}

TEST_F(HelpText, ACommandThatNeedsASubcommandHasNoOwnUsage) {
  app_.add_command("one", "First");
  EXPECT_THAT(help_text(app_), testing::StartsWith("Usage: prog [OPTION]...\n"
                                                   "       prog COMMAND [ARGUMENT]...\n\n"));
  app_.require_command();
  EXPECT_THAT(help_text(app_), testing::StartsWith("Usage: prog COMMAND [ARGUMENT]...\n\n"));
}

TEST_F(HelpText, DefaultsAreShownUnlessTheyMeanNothing) {
  int shown = 4;
  int sentinel = 5;
  std::vector<int> list = {6};
  std::string empty;
  app_.add_option("--shown", shown, "A number");
  app_.add_option("--sentinel", sentinel, "Another").no_default();
  app_.add_option("--described", sentinel, "A third one (default: all)");
  app_.add_option("--required", sentinel, "A fourth one").required();
  app_.add_option("--list", list, "Several");
  app_.add_option("--empty", empty, "A word");
  EXPECT_THAT(help_text(app_),
              AllOf(HasSubstr("A number (default: 4)\n"), HasSubstr("Another\n"),
                    HasSubstr("A third one (default: all)\n"), HasSubstr("A fourth one\n"),
                    HasSubstr("Several\n"), HasSubstr("A word\n")));
}

// Text after the indented examples is a note again.
TEST_F(HelpText, FootersHaveNotesAndExamples) {
  app_.footer("Before.\nExamples:\n  prog a\n  prog b \\\n    --c\nAfter.\n\nAnother paragraph.");
  const Footer footer = footer_of(app_);
  EXPECT_EQ(footer.examples, "prog a\nprog b \\\n  --c\n");
  EXPECT_EQ(footer.notes, "Before.\nAfter.\n\nAnother paragraph.\n");
  EXPECT_THAT(help_text(app_), testing::EndsWith("\nBefore. After.\n\nAnother paragraph.\n"
                                                 "\nExamples:\n  prog a\n  prog b \\\n    --c\n"));
}

// Width 10, from column 3: "ab cdef" ends in column 10 and fits; a further character does not.
TEST_F(HelpText, LinesMayFillTheWidth) {
  EXPECT_EQ(filled("ab cdef gh", 10, 1, 3), "ab cdef\n gh");
  EXPECT_EQ(filled("ab cdefg", 10, 1, 3), "ab\n cdefg");
  EXPECT_EQ(filled("abcdefgh", 10, 1, 3), "abcdefgh");
  EXPECT_EQ(filled("a\n\nb", 10, 2, 0), "a\n\n  b");
}

}  // namespace
}  // namespace trireme
