#include "slurm/render/job_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

TEST(JobTemplate, ValuesAndConditions) {
  const TemplateValues values = {{"name", "x"}, {"none", ""}};
  EXPECT_EQ(fill_template("a {{name}}{{name}}b\n", values), "a xxb\n");
  EXPECT_EQ(fill_template("#? if name\nyes\n#? else\nno\n#? end\nafter\n", values), "yes\nafter\n");
  EXPECT_EQ(fill_template("#? if none\nyes\n#? else\nno\n#? end\n", values), "no\n");
  EXPECT_EQ(fill_template("#? if none\n#? if name\nyes\n#? else\nno\n#? end\n#? end\n", values),
            "");
}

TEST(JobTemplate, EmptyLinesStayAndEmptyValuesGo) {
  const TemplateValues values = {{"none", ""}, {"lines", "1\n2"}};
  EXPECT_EQ(fill_template("a\n\n{{none}}\n  {{none}} \\\nb {{none}}\n{{lines}}\n", values),
            "a\n\nb \n1\n2\n");
}

TEST(JobTemplate, ValuesAreNoTemplates) {
  EXPECT_EQ(fill_template("{{a}}\n", {{"a", "{{b}}"}}), "{{b}}\n");
  EXPECT_EQ(fill_template("{{a}}\n", {{"a", "#? end"}}), "#? end\n");
}

TEST(JobTemplate, MistakesNameTheLine) {
  for (const char* text : {"a\n{{absent}}\n", "a\n#? end\n", "a\n#? if absent\n#? end\n",
                           "a\n{{open\n", "a\n#? unless x\n"}) {
    EXPECT_THAT(message_of<InternalError>([&] { fill_template(text, {}); }), HasSubstr("line 2"))
        << text;
  }
  EXPECT_THROW(fill_template("#? if a\n", {{"a", "x"}}), InternalError);
}

}  // namespace
}  // namespace trireme
