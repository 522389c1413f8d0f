#include "io/chat/jinja_run.h"

#include <set>

#include "io/chat/jinja_functions.h"
#include "io/chat/jinja_lexer.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Calls work() and adds the line to its DataError, unless that has one.
template <class Work>
auto naming_line(int line, Work work) {
  try {
    return work();
  } catch (const DataError& error) {
    const std::string what = error.what();
    throw DataError(what.starts_with("line ") ? what : at_line(line) + printable(what));
  }
}

// JinjaEvaluation computes expressions.
class JinjaEvaluation {
 public:
  using Kind = JinjaExpression::Kind;
  using Scope = JinjaMapping;

  explicit JinjaEvaluation(const JinjaMapping& variables) : scopes_{variables} {
    for (const char* name : {"raise_exception", "namespace", "range", "dict"}) {
      scopes_.front().emplace_back(name, JinjaValue::of(JinjaValue::Function{name}));
    }
  }

  JinjaValue value(const JinjaExpression& e) {
    return naming_line(e.line, [&] {
      budget.take();
      return compute(e);
    });
  }
  bool is_true(const JinjaExpression& e) { return value(e).truth(); }

  void set(const std::string& name, JinjaValue value) {
    set_key(scopes_.back(), name, std::move(value));
  }

  // Sets the variables of a `for` or `set`: one, or as many as the value has items.
  void set_all(const std::vector<std::string>& names, const JinjaValue& value) {
    if (names.size() == 1) {
      set(names.front(), value);
      return;
    }
    const JinjaList items = items_of(value, budget);
    if (items.size() != names.size()) {
      throw DataError(fmt::format("{} values do not fit {} names", items.size(), names.size()));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      set(names[i], items[i]);
    }
  }

  void set_attribute(const std::string& name, const std::string& attribute,
                     const JinjaValue& value) {
    const JinjaValue owner = variable(name);
    const auto* space = owner.as<JinjaValue::Namespace>();
    if (space == nullptr) {
      throw DataError(fmt::format("'{}' is no namespace: only its attributes can be set", name));
    }
    (void)JinjaValue::list({value});  // refuses what can't be kept in another value
    set_key(*space->members, attribute, value);
  }

  void open_scope() { scopes_.emplace_back(); }
  void close_scope() { scopes_.pop_back(); }

  JinjaBudget budget;

 private:
  void set_key(JinjaMapping& mapping, const std::string& key, JinjaValue value) {
    if (JinjaValue* found = find_key(mapping, key, budget)) {
      *found = std::move(value);
    } else {
      mapping.emplace_back(key, std::move(value));
    }
  }

  JinjaValue variable(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const JinjaValue* found = find_key(*scope, name, budget)) {
        return *found;
      }
    }
    return JinjaValue::of(JinjaValue::Undefined{name});
  }

  JinjaValue part(const JinjaExpression& e, std::size_t i) { return value(*e.parts[i]); }

  JinjaArguments arguments(const JinjaExpression& e) {
    JinjaArguments all;
    for (std::size_t i = 1; i < e.parts.size(); ++i) {
      all.values.push_back(part(e, i));
    }
    all.names = e.names;
    return all;
  }

  JinjaValue compute(const JinjaExpression& e) {
    switch (e.kind) {
      case Kind::literal:
        return e.value;
      case Kind::variable:
        return variable(e.name);
      case Kind::list:
      case Kind::mapping:
        return container(e);
      case Kind::attribute:
        return attribute(e);
      case Kind::item:
        return item(e);
      case Kind::slice:
        return slice(e);
      case Kind::call:
        return call(e);
      case Kind::filter: {
        const JinjaValue of = part(e, 0);
        return apply_jinja_filter(e.name, of, arguments(e), budget);
      }
      case Kind::test: {
        const JinjaValue of = part(e, 0);
        return JinjaValue::of(apply_jinja_test(e.name, of, arguments(e), budget));
      }
      case Kind::negation:
        return JinjaValue::of(!is_true(*e.parts[0]));
      case Kind::minus:
      case Kind::plus:
        return computed(e.kind == Kind::minus ? "-" : "+", JinjaValue::of(std::int64_t{0}),
                        part(e, 0), budget);
      default:
        return joined_parts(e);
    }
  }

  JinjaValue joined_parts(const JinjaExpression& e) {
    if (e.kind == Kind::binary) {
      const JinjaValue left = part(e, 0);
      return computed(e.name, left, part(e, 1), budget);
    }
    if (e.kind == Kind::comparison) {
      return JinjaValue::of(compare(e));
    }
    if (e.kind == Kind::choice) {
      if (is_true(*e.parts[1])) {
        return part(e, 0);
      }
      return e.parts[2] == nullptr
                 ? JinjaValue::of(JinjaValue::Undefined{"the value of an if without else"})
                 : part(e, 2);
    }
    const JinjaValue left = part(e, 0);
    return left.truth() == (e.kind == Kind::conjunction) ? part(e, 1) : left;
  }

  JinjaValue container(const JinjaExpression& e) {
    JinjaList list;
    for (std::size_t i = 0; i < e.parts.size(); ++i) {
      list.push_back(part(e, i));
    }
    if (e.kind == Kind::list) {
      return JinjaValue::list(std::move(list));
    }
    JinjaMapping mapping;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < list.size(); i += 2) {
      if (list[i].as_text() == nullptr) {
        throw DataError("keys that are no texts are not supported");
      }
      const std::string& key = *list[i].as_text();
      if (!seen.insert(key).second) {
        throw DataError(fmt::format("the key '{}' occurs twice", key));
      }
      mapping.emplace_back(key, list[i + 1]);
    }
    return JinjaValue::mapping(std::move(mapping));
  }

  JinjaValue attribute(const JinjaExpression& e) {
    const JinjaValue owner = part(e, 0);
    if (owner.as<JinjaValue::Mapping>() != nullptr && is_jinja_method(e.name)) {
      throw DataError(fmt::format("'.{}' is the method of a mapping: write ['{}'] for its value",
                                  e.name, e.name));
    }
    return member_of(owner, JinjaValue::text(e.name), budget);
  }

  JinjaValue item(const JinjaExpression& e) {
    const JinjaValue owner = part(e, 0);
    return member_of(owner, part(e, 1), budget);
  }

  JinjaValue slice(const JinjaExpression& e) {
    const JinjaValue owner = part(e, 0);
    JinjaValue bounds[3];
    const JinjaValue* given[3] = {};
    for (std::size_t i = 0; i < 3; ++i) {
      if (e.parts[i + 1] != nullptr) {
        bounds[i] = part(e, i + 1);
        given[i] = &bounds[i];
      }
    }
    return slice_of(owner, given[0], given[1], given[2], budget);
  }

  JinjaValue call(const JinjaExpression& e) {
    const JinjaExpression& callee = *e.parts[0];
    if (callee.kind == Kind::attribute) {
      const JinjaValue owner = part(callee, 0);
      return call_jinja_method(owner, callee.name, arguments(e), budget);
    }
    const JinjaValue function = value(callee);
    if (const auto* missing = function.as<JinjaValue::Undefined>()) {
      throw DataError(
          fmt::format("'{}' is undefined, or a function that is not supported", missing->name));
    }
    if (function.as<JinjaValue::Function>() == nullptr) {
      throw DataError(fmt::format("a {} can't be called", function.type_name()));
    }
    return call_jinja_function(function.as<JinjaValue::Function>()->name, arguments(e), budget);
  }

  bool holds(const std::string& sign, const JinjaValue& a, const JinjaValue& b) {
    if (sign == "==" || sign == "!=") {
      return JinjaValue::are_same(a, b, budget) == (sign == "==");
    }
    if (sign == "in" || sign == "not in") {
      return contains(b, a, budget) == (sign == "in");
    }
    const int order = compared(a, b, budget);
    return sign == "<"    ? order < 0
           : sign == "<=" ? order <= 0
           : sign == ">"  ? order > 0
                          : order >= 0;
  }

  bool compare(const JinjaExpression& e) {
    JinjaValue left = part(e, 0);
    for (std::size_t i = 0; i < e.names.size(); ++i) {
      JinjaValue right = part(e, i + 1);
      if (!holds(e.names[i], left, right)) {
        return false;
      }
      left = std::move(right);
    }
    return true;
  }

  std::vector<Scope> scopes_;
};

// JinjaRun executes statements.
class JinjaRun {
 public:
  explicit JinjaRun(const JinjaMapping& variables) : evaluation_(variables) {}

  enum class Flow { on, next, stop };

  Flow run(const JinjaBody& body) {
    for (const JinjaStatement& statement : body) {
      const Flow flow = naming_line(statement.line, [&] { return one(statement); });
      if (flow != Flow::on) {
        return flow;
      }
    }
    return Flow::on;
  }

  // Returns what the statements have printed.
  RenderedTemplate result() {
    rendered_.spent = evaluation_.budget.spent();
    return std::move(rendered_);
  }

 private:
  using Kind = JinjaStatement::Kind;

  void print(const std::string& text) {
    evaluation_.budget.take(static_cast<std::int64_t>(text.size()));
    rendered_.text += text;
  }

  Flow one(const JinjaStatement& s) {
    switch (s.kind) {
      case Kind::text:
        print(s.text);
        return Flow::on;
      case Kind::print:
        print(text_of_value(evaluation_.value(*s.expression)));
        return Flow::on;
      case Kind::set: {
        const JinjaValue value = evaluation_.value(*s.expression);
        if (s.attribute.empty()) {
          evaluation_.set_all(s.names, value);
        } else {
          evaluation_.set_attribute(s.names.front(), s.attribute, value);
        }
        return Flow::on;
      }
      case Kind::branches:
        for (const JinjaBranch& branch : s.cases) {
          if (branch.condition == nullptr || evaluation_.is_true(*branch.condition)) {
            return run(branch.body);
          }
        }
        return Flow::on;
      case Kind::loop:
        return loop(s);
      case Kind::stop:
        return Flow::stop;
      case Kind::next:
        return Flow::next;
      case Kind::generation:
        break;
    }
    const std::size_t begin = rendered_.text.size();
    const Flow flow = run(s.body);
    rendered_.generated.emplace_back(begin, rendered_.text.size());
    return flow;
  }

  // Returns the items that a loop goes over.
  JinjaList items(const JinjaStatement& s) {
    JinjaList all = items_of(evaluation_.value(*s.expression), evaluation_.budget);
    if (s.condition == nullptr) {
      return all;
    }
    JinjaList kept;
    for (const JinjaValue& item : all) {
      evaluation_.open_scope();
      evaluation_.set_all(s.names, item);
      if (evaluation_.is_true(*s.condition)) {
        kept.push_back(item);
      }
      evaluation_.close_scope();
    }
    return kept;
  }

  static JinjaValue loop_value(const JinjaList& items, std::size_t at) {
    const auto index = static_cast<std::int64_t>(at);
    const std::int64_t size = std::ssize(items);
    JinjaMapping loop = {{"index0", JinjaValue::of(index)},
                         {"index", JinjaValue::of(index + 1)},
                         {"first", JinjaValue::of(index == 0)},
                         {"last", JinjaValue::of(index + 1 == size)},
                         {"length", JinjaValue::of(size)},
                         {"revindex", JinjaValue::of(size - index)},
                         {"revindex0", JinjaValue::of(size - index - 1)},
                         {"depth", JinjaValue::of(std::int64_t{1})},  // only recursion is deeper
                         {"depth0", JinjaValue::of(std::int64_t{0})}};
    for (const char* const name : {"cycle", "changed"}) {  // defined, but a call is refused
      loop.emplace_back(name, JinjaValue::of(JinjaValue::Function{name}));
    }
    if (at > 0) {
      loop.emplace_back("previtem", items[at - 1]);
    }
    if (at + 1 < items.size()) {
      loop.emplace_back("nextitem", items[at + 1]);
    }
    return JinjaValue::mapping(std::move(loop));
  }

  Flow loop(const JinjaStatement& s) {
    const JinjaList all = items(s);
    for (std::size_t i = 0; i < all.size(); ++i) {
      evaluation_.budget.take();
      evaluation_.open_scope();
      evaluation_.set("loop", loop_value(all, i));
      evaluation_.set_all(s.names, all[i]);
      const Flow flow = run(s.body);
      evaluation_.close_scope();
      if (flow == Flow::stop) {
        break;
      }
    }
    return all.empty() ? run(s.otherwise) : Flow::on;
  }

  JinjaEvaluation evaluation_;
  RenderedTemplate rendered_;
};

}  // namespace

RenderedTemplate render_jinja(const JinjaBody& body, const JinjaMapping& variables) {
  JinjaRun run(variables);
  (void)run.run(body);
  return run.result();
}

}  // namespace trireme
