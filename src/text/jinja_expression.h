// The grammar of expressions, by precedence, on a stream of tokens. The grammar of tags builds on it (jinja_parser.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace unisono::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  size_t position() const { return at_; }
  int line_before() const { return tokens_[at_ > 0 ? at_ - 1 : 0].line; }  // of the token taken last
  void rewind(size_t position) { at_ = position; }
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect(TokenKind kind, std::string_view what);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);

  ExprPtr expression(bool with_conditional = true);
  // One expression, or several with commas as a tuple.
  ExprPtr tuple(bool with_conditional, bool in_parentheses = false);
  // What can be assigned to. with_members: `ns.attr` too.
  ExprPtr target(bool with_members);
  ExprPtr target_name();
  // `|a|b(...)` around an input, null for the text of a block. bare: the first has no bar before it.
  ExprPtr filters(ExprPtr input, bool bare = false);

  // Counts how deep the parser is in what nests, and refuses what is too deep.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }

   private:
    ExpressionParser& parser_;
  };

 private:
  ExprPtr conditional();
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr compare();
  bool comparison(Comparison& comparison);
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary(bool with_members = false);
  ExprPtr name(bool with_members);
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr subscript(ExprPtr object);
  ExprPtr key();
  ExprPtr call(ExprPtr callee);
  ExprPtr test(ExprPtr input);
  std::string dotted_name(std::string_view what);
  std::unique_ptr<CallArgs> call_args();
  bool at_end_of_tuple() const;

  ExprPtr node(Op op, int line) const;
  // With depth counted: throws when the tree gets too deep.
  ExprPtr node(Op op, int line, std::vector<ExprPtr> parts) const;
  ExprPtr node(Op op, int line, ExprPtr first, ExprPtr second = nullptr) const;
  void finish(Expr& expr) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace unisono::text::jinja
