// JinjaExpressions parses the expressions of a template from its tokens. Private to io/chat; one
// thread. The tokens outlive it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/chat/jinja_lexer.h"
#include "io/chat/jinja_tree.h"

namespace trireme {

class JinjaExpressions {
 public:
  explicit JinjaExpressions(std::span<const JinjaToken> tokens) : tokens_(tokens) {}

  const JinjaToken& now() const { return tokens_[at_]; }
  // Returns the present token and goes to the next one.
  const JinjaToken& take();
  bool sees_sign(const char* sign) const {
    return now().kind == JinjaToken::Kind::sign && now().text == sign;
  }
  bool sees_name(const char* name) const {
    return now().kind == JinjaToken::Kind::name && now().text == name;
  }
  bool skip_sign(const char* sign);
  bool skip_name(const char* name);
  void expect_sign(const char* sign);
  void expect(JinjaToken::Kind kind, const char* what);
  std::string name(const char* what);
  [[noreturn]] void fail(const std::string& what) const;

  // Parses an expression, or several with commas between them, which are a list.
  JinjaExpressionPtr expression();
  JinjaExpressionPtr expressions();
  // Parses an expression that is not `a if b else c`, as in front of the `if` of a loop.
  JinjaExpressionPtr alternative();

 private:
  using Kind = JinjaExpression::Kind;
  static constexpr int kMostNesting = 200;
  class Nesting;
  JinjaExpressionPtr made(Kind kind, int line, std::string name = "",
                          std::vector<JinjaExpressionPtr> parts = {}) const;
  JinjaExpressionPtr conjunction();
  JinjaExpressionPtr negation();
  JinjaExpressionPtr comparison();
  JinjaExpressionPtr sum();
  JinjaExpressionPtr concatenation();
  JinjaExpressionPtr product();
  JinjaExpressionPtr unary(bool with_filters);
  JinjaExpressionPtr primary();
  JinjaExpressionPtr bracketed();
  JinjaExpressionPtr with_postfix(JinjaExpressionPtr of);
  JinjaExpressionPtr with_filters(JinjaExpressionPtr of);
  JinjaExpressionPtr subscript(JinjaExpressionPtr of);
  JinjaExpressionPtr filter(JinjaExpressionPtr of);
  JinjaExpressionPtr test(JinjaExpressionPtr of);
  void arguments(JinjaExpression& call);
  void check_named_part(const JinjaExpression& of) const;

  std::span<const JinjaToken> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace trireme
