// The parsed form of a Jinja template. Plain data; immutable once the parser has made it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/chat/jinja_value.h"

namespace trireme {

struct JinjaExpression {
  enum class Kind {
    literal,      // value
    variable,     // name
    list,         // parts
    mapping,      // parts: key, value, key, value, ...
    attribute,    // parts[0].name
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]], null where nothing is given
    call,         // parts[0](the other parts)
    filter,       // parts[0] | name(the other parts)
    test,         // parts[0] is name(the other parts)
    negation,     // not parts[0]
    minus,        // -parts[0]
    plus,         // +parts[0]
    binary,       // parts[0] name parts[1]
    comparison,   // parts[0] names[0] parts[1] names[1] parts[2] ...
    conjunction,  // parts[0] and parts[1]
    disjunction,  // parts[0] or parts[1]
    choice        // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::literal;
  int line = 1;
  int depth = 1;  // of the tree below it
  std::string name;
  JinjaValue value;
  std::vector<std::unique_ptr<JinjaExpression>> parts;
  // Operators of a comparison; of a call, filter or test, the names of the last arguments.
  std::vector<std::string> names;
};
using JinjaExpressionPtr = std::unique_ptr<JinjaExpression>;

struct JinjaStatement;
using JinjaBody = std::vector<JinjaStatement>;

// JinjaBranch is a part of an `if`. condition: null for `else`.
struct JinjaBranch {
  JinjaExpressionPtr condition;
  JinjaBody body;
};

struct JinjaStatement {
  enum class Kind {
    text,
    print,       // {{ expression }}
    set,         // {% set names = expression %}; with `attribute`, that of a namespace
    branches,    // {% if %}
    loop,        // {% for names in expression if condition %} body {% else %} otherwise
    stop,        // {% break %}
    next,        // {% continue %}
    generation,  // {% generation %} body: what the assistant says
  };
  Kind kind = Kind::text;
  int line = 1;
  std::string text;
  std::vector<std::string> names;
  std::string attribute;
  JinjaExpressionPtr expression;
  JinjaExpressionPtr condition;
  std::vector<JinjaBranch> cases;
  JinjaBody body;
  JinjaBody otherwise;
};

}  // namespace trireme
