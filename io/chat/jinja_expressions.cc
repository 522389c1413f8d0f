#include "io/chat/jinja_expressions.h"

#include <algorithm>
#include <charconv>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

std::vector<JinjaExpressionPtr> list_of(JinjaExpressionPtr a, JinjaExpressionPtr b = nullptr) {
  std::vector<JinjaExpressionPtr> list;
  list.push_back(std::move(a));
  if (b != nullptr) {
    list.push_back(std::move(b));
  }
  return list;
}

std::string shown(const JinjaToken& token) {
  using Kind = JinjaToken::Kind;
  switch (token.kind) {
    case Kind::block_end:
      return "'%}'";
    case Kind::print_end:
      return "'}}'";
    case Kind::end:
      return "the end of the template";
    default:
      return fmt::format("'{}'", printable(token.text));
  }
}

}  // namespace

// Nesting bounds how deep the parser calls itself.
class JinjaExpressions::Nesting {
 public:
  explicit Nesting(JinjaExpressions& of) : of_(of) {
    if (++of_.nesting_ > kMostNesting) {
      of_.fail("the expression is nested too deeply");
    }
  }
  ~Nesting() { --of_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  JinjaExpressions& of_;
};

void JinjaExpressions::fail(const std::string& what) const {
  throw DataError(at_line(now().line) + what);
}

const JinjaToken& JinjaExpressions::take() {
  const JinjaToken& token = now();
  at_ += at_ + 1 < tokens_.size() ? 1 : 0;
  return token;
}

bool JinjaExpressions::skip_sign(const char* sign) {
  const bool sees = sees_sign(sign);
  if (sees) {
    take();
  }
  return sees;
}

bool JinjaExpressions::skip_name(const char* name) {
  const bool sees = sees_name(name);
  if (sees) {
    take();
  }
  return sees;
}

void JinjaExpressions::expect_sign(const char* sign) {
  if (!skip_sign(sign)) {
    fail(fmt::format("expected '{}', not {}", sign, shown(now())));
  }
}

void JinjaExpressions::expect(JinjaToken::Kind kind, const char* what) {
  if (now().kind != kind) {
    fail(fmt::format("expected {}, not {}", what, shown(now())));
  }
  take();
}

std::string JinjaExpressions::name(const char* what) {
  if (now().kind != JinjaToken::Kind::name) {
    fail(fmt::format("expected {}, not {}", what, shown(now())));
  }
  return take().text;
}

JinjaExpressionPtr JinjaExpressions::made(Kind kind, int line, std::string name,
                                          std::vector<JinjaExpressionPtr> parts) const {
  auto expression = std::make_unique<JinjaExpression>();
  expression->kind = kind;
  expression->line = line;
  expression->name = std::move(name);
  expression->parts = std::move(parts);
  for (const auto& part : expression->parts) {
    expression->depth = std::max(expression->depth, part == nullptr ? 0 : part->depth + 1);
  }
  if (expression->depth > kMostNesting) {
    fail("the expression is nested too deeply");
  }
  return expression;
}

JinjaExpressionPtr JinjaExpressions::expressions() {
  const int line = now().line;
  JinjaExpressionPtr first = expression();
  if (!sees_sign(",")) {
    return first;
  }
  std::vector<JinjaExpressionPtr> all = list_of(std::move(first));
  while (skip_sign(",") && !sees_sign(")") && now().kind != JinjaToken::Kind::block_end) {
    all.push_back(expression());
  }
  return made(Kind::list, line, "", std::move(all));
}

JinjaExpressionPtr JinjaExpressions::expression() {
  const Nesting nesting(*this);
  const int line = now().line;
  JinjaExpressionPtr value = alternative();
  while (skip_name("if")) {
    std::vector<JinjaExpressionPtr> parts = list_of(std::move(value), alternative());
    parts.push_back(skip_name("else") ? expression() : nullptr);
    value = made(Kind::choice, line, "", std::move(parts));
  }
  return value;
}

JinjaExpressionPtr JinjaExpressions::alternative() {
  JinjaExpressionPtr left = conjunction();
  while (sees_name("or")) {
    const int line = take().line;
    left = made(Kind::disjunction, line, "", list_of(std::move(left), conjunction()));
  }
  return left;
}

JinjaExpressionPtr JinjaExpressions::conjunction() {
  JinjaExpressionPtr left = negation();
  while (sees_name("and")) {
    const int line = take().line;
    left = made(Kind::conjunction, line, "", list_of(std::move(left), negation()));
  }
  return left;
}

JinjaExpressionPtr JinjaExpressions::negation() {
  const Nesting nesting(*this);
  if (!sees_name("not")) {
    return comparison();
  }
  const int line = take().line;
  return made(Kind::negation, line, "", list_of(negation()));
}

JinjaExpressionPtr JinjaExpressions::comparison() {
  const int line = now().line;
  std::vector<JinjaExpressionPtr> parts = list_of(sum());
  std::vector<std::string> operators;
  while (true) {
    constexpr const char* kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
    const auto* found =
        std::ranges::find_if(kOperators, [&](const char* sign) { return sees_sign(sign); });
    if (found != std::end(kOperators)) {
      operators.emplace_back(*found);
      take();
    } else if (skip_name("in")) {
      operators.emplace_back("in");
    } else if (sees_name("not") && tokens_[at_ + 1].kind == JinjaToken::Kind::name &&
               tokens_[at_ + 1].text == "in") {
      take();
      take();
      operators.emplace_back("not in");
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) {
    return std::move(parts.front());
  }
  JinjaExpressionPtr whole = made(Kind::comparison, line, "", std::move(parts));
  whole->names = std::move(operators);
  return whole;
}

JinjaExpressionPtr JinjaExpressions::sum() {
  JinjaExpressionPtr left = concatenation();
  while (sees_sign("+") || sees_sign("-")) {
    const JinjaToken& sign = take();
    left = made(Kind::binary, sign.line, sign.text, list_of(std::move(left), concatenation()));
  }
  return left;
}

JinjaExpressionPtr JinjaExpressions::concatenation() {
  JinjaExpressionPtr left = product();
  while (sees_sign("~")) {
    const JinjaToken& sign = take();
    left = made(Kind::binary, sign.line, sign.text, list_of(std::move(left), product()));
  }
  return left;
}

JinjaExpressionPtr JinjaExpressions::product() {
  JinjaExpressionPtr left = unary(true);
  while (sees_sign("*") || sees_sign("/") || sees_sign("//") || sees_sign("%")) {
    const JinjaToken& sign = take();
    left = made(Kind::binary, sign.line, sign.text, list_of(std::move(left), unary(true)));
  }
  if (sees_sign("**")) {
    fail("powers (**) are not supported");
  }
  return left;
}

JinjaExpressionPtr JinjaExpressions::unary(bool with_filters_too) {
  const Nesting nesting(*this);
  JinjaExpressionPtr value;
  if (sees_sign("-") || sees_sign("+")) {
    const JinjaToken& sign = take();
    value = made(sign.text == "-" ? Kind::minus : Kind::plus, sign.line, "", list_of(unary(false)));
  } else {
    value = primary();
  }
  value = with_postfix(std::move(value));
  return with_filters_too ? with_filters(std::move(value)) : std::move(value);
}

JinjaExpressionPtr JinjaExpressions::primary() {
  using Token = JinjaToken::Kind;
  const int line = now().line;
  JinjaExpressionPtr value = made(Kind::literal, line);
  if (now().kind == Token::name) {
    const std::string& name = take().text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      value->value = JinjaValue::of(name[0] == 't' || name[0] == 'T');
    } else if (name != "none" && name != "None") {
      value = made(Kind::variable, line, name);
    }
  } else if (now().kind == Token::string) {
    std::string text = take().text;
    while (now().kind == Token::string) {
      text += take().text;
    }
    value->value = JinjaValue::text(std::move(text));
  } else if (now().kind == Token::integer || now().kind == Token::number) {
    const bool is_whole = now().kind == Token::integer;
    const std::string& digits = take().text;
    std::int64_t whole = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
    if (is_whole && code != std::errc()) {
      fail(fmt::format("the number {} is too large", digits));
    }
    value->value = is_whole ? JinjaValue::of(whole) : JinjaValue::of(std::stod(digits));
  } else {
    value = bracketed();
  }
  return value;
}

JinjaExpressionPtr JinjaExpressions::bracketed() {
  const int line = now().line;
  if (skip_sign("(")) {
    if (skip_sign(")")) {
      return made(Kind::list, line);
    }
    JinjaExpressionPtr inner = expressions();
    expect_sign(")");
    return inner;
  }
  const bool is_mapping = sees_sign("{");
  if (!is_mapping && !sees_sign("[")) {
    fail(fmt::format("expected an expression, not {}", shown(now())));
  }
  take();
  const char* const end = is_mapping ? "}" : "]";
  std::vector<JinjaExpressionPtr> parts;
  while (!skip_sign(end)) {
    if (!parts.empty()) {
      expect_sign(",");
      if (skip_sign(end)) {
        break;
      }
    }
    parts.push_back(expression());
    if (is_mapping) {
      expect_sign(":");
      parts.push_back(expression());
    }
  }
  return made(is_mapping ? Kind::mapping : Kind::list, line, "", std::move(parts));
}

}  // namespace trireme
