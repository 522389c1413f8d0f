#include "io/chat/jinja_parser.h"

#include <algorithm>

#include "io/chat/jinja_expressions.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using Statement = JinjaStatement::Kind;
using Token = JinjaToken::Kind;

constexpr std::size_t kMostSourceBytes = std::size_t{1} << 20;
constexpr int kMostBlocks = 50;  // in one another

class JinjaBlocks {
 public:
  explicit JinjaBlocks(std::span<const JinjaToken> tokens) : from_(tokens) {}

  JinjaBody run() {
    JinjaBody all = body({});
    if (from_.now().kind != Token::end) {
      from_.fail(fmt::format("there is no tag that '{}' belongs to", tag_));
    }
    return all;
  }

 private:
  // Parses up to one of these tags, whose name is then in tag_ and taken.
  JinjaBody body(const std::vector<std::string>& ends) {
    if (++depth_ > kMostBlocks) {
      from_.fail("tags are nested too deeply");
    }
    JinjaBody all;
    while (from_.now().kind != Token::end) {
      const JinjaToken& token = from_.take();
      JinjaStatement statement;
      statement.line = token.line;
      if (token.kind == Token::text) {
        statement.text = token.text;
      } else if (token.kind == Token::print_begin) {
        statement.kind = Statement::print;
        statement.expression = from_.expressions();
        from_.expect(Token::print_end, "'}}'");
      } else {
        tag_ = from_.name("the name of a tag");
        if (std::ranges::find(ends, tag_) != ends.end()) {
          --depth_;
          return all;
        }
        block(statement);
      }
      all.push_back(std::move(statement));
    }
    if (!ends.empty()) {
      from_.fail(fmt::format("the tag '{}' is missing", ends.back()));
    }
    --depth_;
    return all;
  }

  void end_tag() { from_.expect(Token::block_end, "'%}'"); }

  void block(JinjaStatement& to) {
    if (tag_ == "if") {
      branches(to);
    } else if (tag_ == "for") {
      loop(to);
    } else if (tag_ == "set") {
      assignment(to);
    } else if (tag_ == "break" || tag_ == "continue") {
      if (loops_ == 0) {
        from_.fail(fmt::format("'{}' stands outside a loop", tag_));
      }
      to.kind = tag_ == "break" ? Statement::stop : Statement::next;
      end_tag();
    } else if (tag_ == "generation") {
      to.kind = Statement::generation;
      end_tag();
      to.body = body({"endgeneration"});
      end_tag();
    } else {
      from_.fail(fmt::format("the tag '{}' is not supported", printable(tag_)));
    }
  }

  void branches(JinjaStatement& to) {
    to.kind = Statement::branches;
    while (tag_ == "if" || tag_ == "elif") {
      JinjaBranch branch;
      branch.condition = from_.expressions();
      end_tag();
      branch.body = body({"elif", "else", "endif"});
      to.cases.push_back(std::move(branch));
    }
    if (tag_ == "else") {
      end_tag();
      to.cases.push_back({nullptr, body({"endif"})});
    }
    end_tag();
  }

  void loop(JinjaStatement& to) {
    to.kind = Statement::loop;
    names(to);
    if (!from_.skip_name("in")) {
      from_.fail("a loop is written {% for NAME in VALUES %}");
    }
    to.expression = from_.alternative();
    if (from_.skip_name("if")) {
      to.condition = from_.expression();
    }
    if (from_.sees_name("recursive")) {
      from_.fail("recursive loops are not supported");
    }
    end_tag();
    ++loops_;
    to.body = body({"else", "endfor"});
    --loops_;
    if (tag_ == "else") {
      end_tag();
      to.otherwise = body({"endfor"});
    }
    end_tag();
  }

  void assignment(JinjaStatement& to) {
    to.kind = Statement::set;
    names(to);
    if (to.names.size() == 1 && from_.skip_sign(".")) {
      to.attribute = from_.name("the name of an attribute");
    }
    if (!from_.skip_sign("=")) {
      from_.fail("the tag 'set' is supported as {% set NAME = VALUE %} only");
    }
    to.expression = from_.expressions();
    end_tag();
  }

  void names(JinjaStatement& to) {
    const bool in_brackets = from_.skip_sign("(");
    do {
      to.names.push_back(from_.name("a name"));
    } while (from_.skip_sign(","));
    if (in_brackets) {
      from_.expect_sign(")");
    }
  }

  JinjaExpressions from_;
  std::string tag_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

JinjaBody parse_jinja(std::string_view source) {
  if (source.size() > kMostSourceBytes) {
    throw DataError(fmt::format("the chat template has {} bytes, more than {}", source.size(),
                                kMostSourceBytes));
  }
  const std::vector<JinjaToken> tokens = lex_jinja(source);
  return JinjaBlocks(tokens).run();
}

}  // namespace trireme
