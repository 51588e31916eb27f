#include "text/jinja_expression.h"

#include <algorithm>
#include <array>

namespace unisono::text::jinja {

namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::end: return "the end of the template";
    case TokenKind::block_end: return "'%}'";
    case TokenKind::variable_end: return "'}}'";
    case TokenKind::string: return "a string";
    default: return "'" + token.text + "'";
  }
}

[[noreturn]] void expected(std::string_view what, const Token& token) {
  fail_at(token.line, std::string(what) + " is expected where " + described(token) + " stands.");
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (parser_.nesting_ >= kMaxNesting)
    fail_at(parser_.current().line, "the template nests deeper than " + std::to_string(kMaxNesting) + " levels.");
  ++parser_.nesting_;
}

bool ExpressionParser::skip_sign(std::string_view sign) {
  if (!current().is_sign(sign)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  ++at_;
  return true;
}

void ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) expected(what, current());
  take();
}

void ExpressionParser::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) expected("'" + std::string(sign) + "'", current());
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) expected("'" + std::string(name) + "'", current());
}

ExprPtr ExpressionParser::node(Op op, int line) const {
  auto expr = std::make_unique<Expr>();
  expr->op = op;
  expr->line = line;
  return expr;
}

void ExpressionParser::finish(Expr& expr) const {
  int depth = 0;
  auto see = [&](const ExprPtr& part) {
    if (part != nullptr) depth = std::max(depth, part->depth);
  };
  for (const ExprPtr& part : expr.parts) see(part);
  if (expr.args != nullptr) {
    for (const ExprPtr& arg : expr.args->positional) see(arg);
    for (const auto& [name, arg] : expr.args->named) see(arg);
    see(expr.args->star);
    see(expr.args->double_star);
  }
  expr.depth = depth + 1;
  if (expr.depth > kMaxNesting)
    fail_at(expr.line, "an expression nests deeper than " + std::to_string(kMaxNesting) + " levels.");
}

ExprPtr ExpressionParser::node(Op op, int line, std::vector<ExprPtr> parts) const {
  ExprPtr expr = node(op, line);
  expr->parts = std::move(parts);
  finish(*expr);
  return expr;
}

ExprPtr ExpressionParser::node(Op op, int line, ExprPtr first, ExprPtr second) const {
  std::vector<ExprPtr> parts;
  parts.push_back(std::move(first));
  if (second != nullptr) parts.push_back(std::move(second));
  return node(op, line, std::move(parts));
}

ExprPtr ExpressionParser::expression(bool with_conditional) { return with_conditional ? conditional() : logical_or(); }

ExprPtr ExpressionParser::conditional() {
  Nesting nesting(*this);
  int line = current().line;
  ExprPtr value = logical_or();
  while (skip_name("if")) {
    std::vector<ExprPtr> parts;
    parts.push_back(logical_or());
    parts.push_back(std::move(value));
    parts.push_back(skip_name("else") ? conditional() : nullptr);
    value = node(Op::conditional, line, std::move(parts));
    line = current().line;
  }
  return value;
}

ExprPtr ExpressionParser::logical_or() {
  ExprPtr left = logical_and();
  while (current().is_name("or")) {
    int line = take().line;
    left = node(Op::logical_or, line, std::move(left), logical_and());
  }
  return left;
}

ExprPtr ExpressionParser::logical_and() {
  ExprPtr left = logical_not();
  while (current().is_name("and")) {
    int line = take().line;
    left = node(Op::logical_and, line, std::move(left), logical_not());
  }
  return left;
}

ExprPtr ExpressionParser::logical_not() {
  if (!current().is_name("not")) return compare();
  Nesting nesting(*this);
  int line = take().line;
  return node(Op::logical_not, line, logical_not());
}

bool ExpressionParser::comparison(Comparison& comparison) {
  struct Sign {
    std::string_view text;
    Comparison comparison;
  };
  constexpr std::array<Sign, 6> kSigns = {{{"==", Comparison::equal},
                                           {"!=", Comparison::not_equal},
                                           {"<", Comparison::less},
                                           {"<=", Comparison::less_equal},
                                           {">", Comparison::greater},
                                           {">=", Comparison::greater_equal}}};
  for (const Sign& sign : kSigns)
    if (skip_sign(sign.text)) {
      comparison = sign.comparison;
      return true;
    }
  comparison = Comparison::in;
  if (skip_name("in")) return true;
  comparison = Comparison::not_in;
  if (!current().is_name("not") || !following().is_name("in")) return false;
  at_ += 2;
  return true;
}

ExprPtr ExpressionParser::compare() {
  int line = current().line;
  std::vector<ExprPtr> parts;
  parts.push_back(sum());
  std::vector<Comparison> compares;
  for (Comparison next{}; comparison(next);) {
    compares.push_back(next);
    parts.push_back(sum());
  }
  if (compares.empty()) return std::move(parts[0]);
  ExprPtr expr = node(Op::compare, line, std::move(parts));
  expr->compares = std::move(compares);
  return expr;
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concat();
  while (current().is_sign("+") || current().is_sign("-")) {
    Token sign = take();
    left = node(sign.text == "+" ? Op::add : Op::subtract, sign.line, std::move(left), concat());
  }
  return left;
}

ExprPtr ExpressionParser::concat() {
  int line = current().line;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (skip_sign("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts[0]);
  return node(Op::concat, line, std::move(parts));
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  for (;;) {
    const Token& sign = current();
    Op op;
    if (sign.is_sign("*"))
      op = Op::multiply;
    else if (sign.is_sign("/"))
      op = Op::divide;
    else if (sign.is_sign("//"))
      op = Op::floor_divide;
    else if (sign.is_sign("%"))
      op = Op::modulo;
    else
      return left;
    int line = take().line;
    left = node(op, line, std::move(left), power());
  }
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary();
  while (current().is_sign("**")) {
    int line = take().line;
    left = node(Op::power, line, std::move(left), unary());
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  Nesting nesting(*this);
  ExprPtr expr;
  if (current().is_sign("-") || current().is_sign("+")) {
    Token sign = take();
    expr = node(sign.text == "-" ? Op::negative : Op::positive, sign.line, unary(false));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::primary(bool with_members) {
  int line = current().line;
  switch (current().kind) {
    case TokenKind::name: return name(with_members);
    case TokenKind::string: {
      std::string value = take().text;
      while (current().kind == TokenKind::string) value += take().text;
      ExprPtr expr = node(Op::constant, line);
      expr->constant = Text::constant(std::move(value));
      return expr;
    }
    case TokenKind::integer:
    case TokenKind::real: {
      ExprPtr expr = node(Op::constant, line);
      expr->constant = take().number;
      return expr;
    }
    default: break;
  }
  if (skip_sign("(")) {
    ExprPtr expr = tuple(true, true);
    expect_sign(")");
    return expr;
  }
  if (current().is_sign("[")) return list();
  if (current().is_sign("{")) return dict();
  expected("an expression", current());
}

ExprPtr ExpressionParser::name(bool with_members) {
  Token token = take();
  ExprPtr expr = node(Op::constant, token.line);
  if (token.text == "true" || token.text == "True") {
    expr->constant = true;
  } else if (token.text == "false" || token.text == "False") {
    expr->constant = false;
  } else if (token.text == "none" || token.text == "None") {
    expr->constant = None{};
  } else {
    expr->op = Op::name;
    expr->name = token.text;
  }
  if (!with_members || !current().is_sign(".") || expr->op != Op::name) return expr;
  take();
  if (current().kind != TokenKind::name) expected("the name of an attribute", current());
  expr->op = Op::member_slot;
  expr->attribute = take().text;
  return expr;
}

bool ExpressionParser::at_end_of_tuple() const {
  return current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || current().is_sign(")");
}

ExprPtr ExpressionParser::tuple(bool with_conditional, bool in_parentheses) {
  int line = current().line;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (!at_end_of_tuple()) {
    parts.push_back(expression(with_conditional));
    if (!skip_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !in_parentheses) expected("an expression", current());
  return node(Op::tuple, line, std::move(parts));
}

ExprPtr ExpressionParser::target(bool with_members) {
  int line = current().line;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (!at_end_of_tuple()) {
    ExprPtr part = primary(with_members);
    if (part->op != Op::name && part->op != Op::member_slot && part->op != Op::tuple)
      fail_at(part->line, "this can't be assigned to.");
    parts.push_back(std::move(part));
    if (!skip_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.empty()) expected("the name of a variable", current());
  return is_tuple ? node(Op::tuple, line, std::move(parts)) : std::move(parts[0]);
}

ExprPtr ExpressionParser::target_name() {
  if (current().kind != TokenKind::name) expected("a name", current());
  ExprPtr expr = name(false);
  if (expr->op != Op::name) fail_at(expr->line, "this can't be assigned to.");
  return expr;
}

ExprPtr ExpressionParser::list() {
  int line = take().line;
  std::vector<ExprPtr> parts;
  while (!current().is_sign("]")) {
    if (!parts.empty()) expect_sign(",");
    if (current().is_sign("]")) break;
    parts.push_back(expression());
  }
  expect_sign("]");
  return node(Op::list, line, std::move(parts));
}

ExprPtr ExpressionParser::dict() {
  int line = take().line;
  std::vector<ExprPtr> parts;
  while (!current().is_sign("}")) {
    if (!parts.empty()) expect_sign(",");
    if (current().is_sign("}")) break;
    parts.push_back(expression());
    expect_sign(":");
    parts.push_back(expression());
  }
  expect_sign("}");
  return node(Op::dict, line, std::move(parts));
}

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  for (;;) {
    if (current().is_sign(".") || current().is_sign("["))
      expr = subscript(std::move(expr));
    else if (current().is_sign("("))
      expr = call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr expr) {
  for (;;) {
    if (current().is_sign("|"))
      expr = filters(std::move(expr));
    else if (current().is_name("is"))
      expr = test(std::move(expr));
    else if (current().is_sign("("))
      expr = call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  Token sign = take();
  if (sign.text == ".") {
    Token token = take();
    if (token.kind == TokenKind::name) {
      ExprPtr expr = node(Op::attribute, sign.line, std::move(object));
      expr->attribute = token.text;
      return expr;
    }
    if (token.kind != TokenKind::integer) expected("the name of an attribute", token);
    ExprPtr index = node(Op::constant, token.line);
    index->constant = token.number;
    return node(Op::item, sign.line, std::move(object), std::move(index));
  }
  std::vector<ExprPtr> keys;
  while (!current().is_sign("]")) {
    if (!keys.empty()) expect_sign(",");
    keys.push_back(key());
  }
  int line = take().line;
  if (keys.size() == 1 && keys[0]->op == Op::slice && keys[0]->parts[0] == nullptr) {
    keys[0]->parts[0] = std::move(object);
    finish(*keys[0]);
    return std::move(keys[0]);
  }
  for (const ExprPtr& part : keys)
    if (part->op == Op::slice && part->parts[0] == nullptr)
      fail_at(line, "a slice among several subscripts is not supported.");
  ExprPtr index = keys.size() == 1 ? std::move(keys[0]) : node(Op::tuple, line, std::move(keys));
  return node(Op::item, sign.line, std::move(object), std::move(index));
}

// What stands between the brackets of a subscript: an expression, or a slice of nothing yet.
ExprPtr ExpressionParser::key() {
  int line = current().line;
  auto here = [&] {
    return current().is_sign(":") || current().is_sign("]") || current().is_sign(",") ? nullptr : expression();
  };
  ExprPtr start = here();
  if (!skip_sign(":")) {
    if (start == nullptr) expected("an expression", current());
    return start;
  }
  std::vector<ExprPtr> parts;
  parts.push_back(nullptr);
  parts.push_back(std::move(start));
  parts.push_back(here());
  parts.push_back(skip_sign(":") ? here() : nullptr);
  return node(Op::slice, line, std::move(parts));
}

std::unique_ptr<CallArgs> ExpressionParser::call_args() {
  int line = current().line;
  auto args = std::make_unique<CallArgs>();
  auto ensure = [&](bool holds) {
    if (!holds) fail_at(line, "the arguments of a call stand in no valid order.");
  };
  expect_sign("(");
  for (bool first = true; !current().is_sign(")"); first = false) {
    if (!first) expect_sign(",");
    if (current().is_sign(")")) break;
    if (skip_sign("*")) {
      ensure(args->star == nullptr && args->double_star == nullptr);
      args->star = expression();
    } else if (skip_sign("**")) {
      ensure(args->double_star == nullptr);
      args->double_star = expression();
    } else if (current().kind == TokenKind::name && following().is_sign("=")) {
      ensure(args->double_star == nullptr);
      std::string name = take().text;
      take();
      if (args->named.size() >= kMaxNames) fail_at(line, "a call has more than 1000 named arguments.");
      for (const auto& [other, value] : args->named)
        if (other == name) fail_at(line, "the argument '" + name + "' is given twice.");
      args->named.emplace_back(std::move(name), expression());
    } else {
      ensure(args->star == nullptr && args->double_star == nullptr && args->named.empty());
      args->positional.push_back(expression());
    }
  }
  expect_sign(")");
  return args;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  int line = current().line;
  ExprPtr expr = node(Op::call, line, std::move(callee));
  expr->args = call_args();
  finish(*expr);
  return expr;
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  if (current().kind != TokenKind::name) expected(what, current());
  std::string name = take().text;
  while (skip_sign(".")) {
    if (current().kind != TokenKind::name) expected(what, current());
    name += "." + take().text;
  }
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr input, bool bare) {
  while (bare || skip_sign("|")) {
    bare = false;
    int line = current().line;
    std::string name = dotted_name("the name of a filter");
    if (input == nullptr) input = node(Op::captured, line);
    ExprPtr expr = node(Op::filter, line, std::move(input));
    expr->attribute = std::move(name);
    expr->args = current().is_sign("(") ? call_args() : std::make_unique<CallArgs>();
    finish(*expr);
    input = std::move(expr);
  }
  return input;
}

ExprPtr ExpressionParser::test(ExprPtr input) {
  int line = take().line;
  bool negated = skip_name("not");
  std::string name = dotted_name("the name of a test");
  ExprPtr expr = node(Op::test, line, std::move(input));
  expr->attribute = std::move(name);
  expr->args = std::make_unique<CallArgs>();
  const Token& next = current();
  bool begins_value = next.kind == TokenKind::name || next.kind == TokenKind::string || next.kind == TokenKind::integer ||
                      next.kind == TokenKind::real || next.is_sign("[") || next.is_sign("{");
  if (next.is_sign("(")) {
    expr->args = call_args();
  } else if (begins_value && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) fail_at(next.line, "tests can't be chained with 'is'.");
    Nesting nesting(*this);
    expr->args->positional.push_back(postfix(primary()));
  }
  finish(*expr);
  return negated ? node(Op::logical_not, line, std::move(expr)) : std::move(expr);
}

}  // namespace unisono::text::jinja
