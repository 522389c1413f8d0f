#include "src/study/redaction/table_redaction.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

void expect_redacted(const std::string& text, const std::string& expected) {
  EXPECT_EQ(redact(text).text, expected);
  EXPECT_EQ(redact(expected).text, expected);
}

TEST(TableRedaction, GoesOnBehindOddLines) {
  for (const std::string odd : {"", "2,broken", "# c", "-- comment", "Here the second part begins",
                                "{\"a\": 1}", "\none, two, three\nof the \"rows", "\n\n\n\n\n\n"}) {
    expect_redacted(
        "id,user,password\n1,joe,x1\n" + odd + "\n2,jim,x2\n3,kim,x3\n",
        "id,user,password\n1,joe,REDACTED\n" + odd + "\n2,jim,REDACTED\n3,kim,REDACTED\n");
  }
  for (const std::string odd : {"", "# none yet", "\n# none yet", "2,broken,x", "none yet"}) {
    expect_redacted("id,password\n" + odd + "\n1,x1\n", "id,password\n" + odd + "\n1,REDACTED\n");
  }
  expect_redacted("| user | pin |\n|---|---|\n| joe | x1 |\ntext\n| jim | x2 |\n",
                  "| user | pin |\n|---|---|\n| joe | REDACTED |\ntext\n| jim | REDACTED |\n");
  expect_redacted("user,pin\njoe,x1\n\nuser,host,pin\njim,h,x2\n",
                  "user,pin\njoe,REDACTED\n\nuser,host,pin\njim,h,REDACTED\n");
}

// What follows a table is no row of it if it has words where the rows have numbers, if it has
// blanks or another alignment, and behind many other lines.
TEST(TableRedaction, TextsBehindATableStay) {
  const std::string table = "id,user,pin\n1,joe,x1\n";
  const std::string redacted = "id,user,pin\n1,joe,REDACTED\n";
  for (const std::string text :
       {"\nname,age,city\njoe,5,berlin\n7,8,9\n", "\nThen, in the end, it failed\n",
        "\na=1,b=2,c=3\n", "\n1, 2, 3\n", "a\nb\nc\nd\ne\nf\ng\nh\ni\n1,2,3\n"}) {
    expect_redacted(table + text, redacted + text);
  }
  expect_redacted("user  pin\njoe   x1\n\nnodes  4\nranks  8\n",
                  "user  pin\njoe   REDACTED\n\nnodes  4\nranks  8\n");
  expect_redacted("USER  THE PIN  SHELL\njoe   x1       sh\n\ntraining is done\n",
                  "USER  THE PIN  SHELL\njoe   REDACTED       sh\n\ntraining is done\n");
  expect_redacted(
      "| user | pin |\n|---|---|\n| a | x1 |\n\n| name | size |\n|---|---|\n| b | 5 |\n",
      "| user | pin |\n|---|---|\n| a | REDACTED |\n\n| name | size |\n|---|---|\n"
      "| b | 5 |\n");
}

TEST(TableRedaction, ShortRowsAreReadByThePlacesOfTheColumns) {
  const std::string header = "user     password     host\n";
  expect_redacted(header + "joe      x1           h1\njim      x2 y\nkim      x3           h2\n",
                  header +
                      "joe      REDACTED           h1\njim      REDACTED\n"
                      "kim      REDACTED           h2\n");
  expect_redacted(header + "         x1           h1\njim                   h3\n",
                  header + "         REDACTED           h1\njim                   h3\n");
  expect_redacted("name   n  pin\nj\u00f6rg   1  x1\nj\u00e4n       x2\n",
                  "name   n  pin\nj\u00f6rg   1  REDACTED\nj\u00e4n       REDACTED\n");
  expect_redacted(header + "joe\njoe      in the house\nx  y\n",
                  header + "joe\njoe      REDACTED\nx  y\n");
}

// A value in quotes on the line below a password's name in quotes is not its value.
TEST(TableRedaction, HeadersMayBeInQuotes) {
  for (const char sign : {',', ';', '\t'}) {
    for (const std::string name : {"password", "db password"}) {
      const std::string header = std::string("\"user\"") + sign + "\"" + name + "\"\n";
      expect_redacted(
          header + "\"joe\"" + sign + "\"x1\"\n\"jim\"" + sign + "\"x2\"\n",
          header + "\"joe\"" + sign + "\"REDACTED\"\n\"jim\"" + sign + "\"REDACTED\"\n");
      expect_redacted(header + "\r\n\"joe\"" + sign + "x1\n",
                      header + "\r\n\"joe\"" + sign + "REDACTED\n");
    }
  }
}

// Only the quote at the begin of a cell is one around it.
TEST(TableRedaction, CellsMayHoldQuotes) {
  expect_redacted("| user | pin |\n|---|---|\n| joe | a1\"x |\n| ann | bb |\n",
                  "| user | pin |\n|---|---|\n| joe | REDACTED |\n| ann | REDACTED |\n");
  expect_redacted("user\tpin\th\njoe\ta1\"x\th\n", "user\tpin\th\njoe\tREDACTED\th\n");
  expect_redacted("user,pin,h\njoe,a1\"x,h\n\"a \"\"b,c\"\"\",\"x,\"\"1\",h\n",
                  "user,pin,h\njoe,REDACTED,h\n\"a \"\"b,c\"\"\",\"REDACTED\",h\n");
}

TEST(TableRedaction, NamesInQuotesMayHoldSignsAndLineEnds) {
  for (const std::string name : {"full, name", "mean; ms", "a \"\"x\"\", b", "full\nname", "a\r\nb",
                                 "the mean of it, and more", "loss (ms); x", "5, 6"}) {
    expect_redacted("user,\"" + name + "\",pin\na,b,x1\nc,\"d\",x2\n",
                    "user,\"" + name + "\",pin\na,b,REDACTED\nc,\"d\",REDACTED\n");
    expect_redacted("\"" + name + "\";user;pin\na;b;x1\n",
                    "\"" + name + "\";user;pin\na;b;REDACTED\n");
    expect_redacted("user,pin,\"" + name + "\"\na,x1,b\n",
                    "user,pin,\"" + name + "\"\na,REDACTED,b\n");
  }
  for (const std::string text :
       {"5,\"the password, which is of it\",a\n6,b,c\n", "a,\"the pin, or none\",c\nd,e,f\n"}) {
    expect_redacted(text, text);
  }
}

// A cell of a header may have been replaced before.
TEST(TableRedaction, HeadersMayHoldReplacedTexts) {
  expect_redacted("user,REDACTED,pin\nj,a,x1\n", "user,REDACTED,pin\nj,a,REDACTED\n");
  expect_redacted("user  REDACTED  pin\nj     a         x1\n",
                  "user  REDACTED  pin\nj     a         REDACTED\n");
  expect_redacted("| user | REDACTED | pin |\n|---|---|---|\n| j | a | x1 |\n",
                  "| user | REDACTED | pin |\n|---|---|---|\n| j | a | REDACTED |\n");
  expect_redacted("REDACTED,pin\nj,x1\n", "REDACTED,pin\nj,REDACTED\n");
  expect_redacted("pin,REDACTED,host\nx1,a,b\n", "pin,REDACTED,host\nREDACTED,a,b\n");
}

// A line of a secret's name and its value, or a row of another table, is no header.
TEST(TableRedaction, EntriesOfListsAreNoHeaders) {
  const std::string report =
      "| name | value |\n|---|---|\n| tokens | 24.58k |\n"
      "| mean throughput | 5796.4 tokens/s |\n| mean MFU | 24.8 % |\n";
  expect_redacted(report, report);
  for (const char sign : {',', ';', '|', '\t'}) {
    const auto with_sign = [&](std::string text) {
      std::replace(text.begin(), text.end(), ',', sign);
      return text;
    };
    for (const std::string value : {"x1y", "moon", "0.5"}) {
      expect_redacted(with_sign("setting,value\nDB_PASS," + value + "\nlr,0.1\nsteps,100\n"),
                      with_sign("setting,value\nDB_PASS,REDACTED\nlr,0.1\nsteps,100\n"));
    }
    expect_redacted(with_sign("DB_PASS,x1y\nlr,0.1\n"), with_sign("DB_PASS,REDACTED\nlr,0.1\n"));
  }
  const std::string tokens = "name,value,unit\ntokens,24.58k,1\nlearning_rate,0.1,1\n";
  expect_redacted(tokens, tokens);
}

}  // namespace
}  // namespace trireme
