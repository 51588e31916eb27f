// Goes through the parts of a parsed template. Shared by the passes that look at templates without running them.
#pragma once

#include "text/jinja_ast.h"

namespace unisono::text::jinja {

// visit(Expr&) for each direct part of an expression.
template <class Visit>
void for_each_part(const Expr& expr, Visit&& visit) {
  auto see = [&](const ExprPtr& part) {
    if (part != nullptr) visit(*part);
  };
  for (const ExprPtr& part : expr.parts) see(part);
  if (expr.args == nullptr) return;
  for (const ExprPtr& arg : expr.args->positional) see(arg);
  for (const auto& [name, arg] : expr.args->named) see(arg);
  see(expr.args->star);
  see(expr.args->double_star);
}

// statement(const Stmt&) for each statement of a block, nested ones and those of functions included; expression(const
// Expr&) for each whole expression that is read in them.
template <class OnStatement, class OnExpression>
void for_each(const Block& block, OnStatement&& statement, OnExpression&& expression) {
  auto see = [&](const ExprPtr& expr) {
    if (expr != nullptr) expression(*expr);
  };
  for (const StmtPtr& stmt : block) {
    statement(*stmt);
    see(stmt->value);
    for (const ExprPtr& part : stmt->parts) see(part);
    for (const ExprPtr& test : stmt->tests) see(test);
    for (const Block& inner : stmt->blocks) for_each(inner, statement, expression);
    if (stmt->function == nullptr) continue;
    for (const ExprPtr& value : stmt->function->defaults) see(value);
    for_each(stmt->function->body, statement, expression);
  }
}

}  // namespace unisono::text::jinja
