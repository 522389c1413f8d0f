#include <algorithm>

#include "io/chat/jinja_expressions.h"
#include "io/chat/jinja_functions.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

std::vector<JinjaExpressionPtr> only(JinjaExpressionPtr one) {
  std::vector<JinjaExpressionPtr> list;
  list.push_back(std::move(one));
  return list;
}

}  // namespace

JinjaExpressionPtr JinjaExpressions::with_postfix(JinjaExpressionPtr of) {
  while (true) {
    const int line = now().line;
    if (skip_sign(".")) {
      if (now().kind == JinjaToken::Kind::integer) {
        fail("an index behind a dot is not supported");
      }
      std::string attribute = name("the name of an attribute");
      if (sees_sign("(") && !is_jinja_method(attribute)) {
        fail(fmt::format("the method '{}' is not supported", attribute));
      }
      of = made(Kind::attribute, line, std::move(attribute), only(std::move(of)));
    } else if (skip_sign("[")) {
      of = subscript(std::move(of));
    } else if (sees_sign("(")) {
      of = made(Kind::call, line, "", only(std::move(of)));
      arguments(*of);
    } else {
      return of;
    }
  }
}

JinjaExpressionPtr JinjaExpressions::with_filters(JinjaExpressionPtr of) {
  while (true) {
    if (sees_sign("|")) {
      of = filter(std::move(of));
    } else if (sees_name("is")) {
      of = test(std::move(of));
    } else if (sees_sign("(")) {
      of = made(Kind::call, now().line, "", only(std::move(of)));
      arguments(*of);
    } else {
      return of;
    }
  }
}

JinjaExpressionPtr JinjaExpressions::subscript(JinjaExpressionPtr of) {
  const int line = now().line;
  std::vector<JinjaExpressionPtr> parts = only(std::move(of));
  bool is_slice = false;
  for (bool more = true; more;) {
    parts.push_back(sees_sign(":") || sees_sign("]") ? nullptr : expression());
    more = skip_sign(":");
    is_slice = is_slice || more;
  }
  expect_sign("]");
  if (!is_slice) {
    if (parts[1] == nullptr) {
      fail("expected an index");
    }
    return made(Kind::item, line, "", std::move(parts));
  }
  if (parts.size() > 4) {
    fail("a slice has at most three parts");
  }
  parts.resize(4);
  return made(Kind::slice, line, "", std::move(parts));
}

JinjaExpressionPtr JinjaExpressions::filter(JinjaExpressionPtr of) {
  const int line = take().line;
  std::string filter_name = name("the name of a filter");
  if (!is_jinja_filter(filter_name)) {
    fail(fmt::format("the filter '{}' is not supported", filter_name));
  }
  JinjaExpressionPtr whole = made(Kind::filter, line, std::move(filter_name), only(std::move(of)));
  if (sees_sign("(")) {
    arguments(*whole);
  }
  check_named_part(*whole);
  return whole;
}

// Refuses the name of a filter or test that is an argument, as of map('upper').
void JinjaExpressions::check_named_part(const JinjaExpression& of) const {
  const bool is_map = of.name == "map";
  const bool selects = of.name.starts_with("select") || of.name.starts_with("reject");
  const std::size_t at = of.name.ends_with("attr") ? 2 : 1;
  if ((!is_map && !selects) || of.parts.size() <= at + of.names.size() ||
      of.parts[at]->kind != Kind::literal || of.parts[at]->value.as_text() == nullptr) {
    return;
  }
  const std::string& named = *of.parts[at]->value.as_text();
  if (is_map ? !is_jinja_filter(named) : !is_jinja_test(named) && named != "==") {
    fail(fmt::format("the {} '{}' is not supported", is_map ? "filter" : "test", printable(named)));
  }
}

JinjaExpressionPtr JinjaExpressions::test(JinjaExpressionPtr of) {
  using Token = JinjaToken::Kind;
  const int line = take().line;
  const bool negated = skip_name("not");
  std::string test_name = name("the name of a test");
  if (!is_jinja_test(test_name)) {
    fail(fmt::format("the test '{}' is not supported", test_name));
  }
  JinjaExpressionPtr whole = made(Kind::test, line, std::move(test_name), only(std::move(of)));
  if (sees_sign("(")) {
    arguments(*whole);
  } else if (now().kind == Token::string || now().kind == Token::integer ||
             now().kind == Token::number || sees_sign("[") || sees_sign("{") ||
             (now().kind == Token::name && !sees_name("else") && !sees_name("or") &&
              !sees_name("and") && !sees_name("if") && !sees_name("is") && !sees_name("in") &&
              !sees_name("not"))) {
    whole->parts.push_back(with_postfix(primary()));
    whole->depth = std::max(whole->depth, whole->parts.back()->depth + 1);
  }
  return negated ? made(Kind::negation, line, "", only(std::move(whole))) : std::move(whole);
}

void JinjaExpressions::arguments(JinjaExpression& call) {
  expect_sign("(");
  for (bool first = true; !skip_sign(")"); first = false) {
    if (!first) {
      expect_sign(",");
      if (skip_sign(")")) {
        break;
      }
    }
    if (sees_sign("*") || sees_sign("**")) {
      fail("arguments with * are not supported");
    }
    const bool is_named = now().kind == JinjaToken::Kind::name &&
                          tokens_[at_ + 1].kind == JinjaToken::Kind::sign &&
                          tokens_[at_ + 1].text == "=";
    if (is_named) {
      call.names.push_back(take().text);
      take();
    } else if (!call.names.empty()) {
      fail("arguments without names come first");
    }
    call.parts.push_back(expression());
    call.depth = std::max(call.depth, call.parts.back()->depth + 1);
  }
  if (call.depth > kMostNesting) {
    fail("the expression is nested too deeply");
  }
}

}  // namespace trireme
