#include "text/jinja_parser.h"

#include <algorithm>

#include "text/jinja_expression.h"
#include "text/jinja_scope.h"
#include "text/unicode.h"

namespace unisono::text::jinja {

namespace {

constexpr size_t kMaxSource = size_t(4) << 20;

class Parser : ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(tokenize(source)) {}
  std::unique_ptr<Function> whole();

 private:
  using Names = std::initializer_list<std::string_view>;
  Block statements(Names ends);
  StmtPtr statement();
  StmtPtr start(Act act);
  void output(Block& block, ExprPtr part, int line);

  StmtPtr branch();
  StmtPtr loop();
  StmtPtr set();
  StmtPtr macro();
  StmtPtr call_block();
  StmtPtr generation();
  StmtPtr filter_block();
  StmtPtr with();
  StmtPtr print();
  StmtPtr jump(Act act);
  void signature(Function& function);
  Block function_body(std::string_view end);

  int loops_ = 0;  // around this place, in the same function
};

bool is_one_of(const Token& token, std::initializer_list<std::string_view> names) {
  return token.kind == TokenKind::name && std::find(names.begin(), names.end(), token.text) != names.end();
}

ExprPtr text_constant(std::string text, int line) {
  auto expr = std::make_unique<Expr>();
  expr->line = line;
  expr->constant = Text::constant(std::move(text));
  return expr;
}

std::unique_ptr<Function> Parser::whole() {
  auto function = std::make_unique<Function>();
  function->body = statements({});
  bind_names(*function);
  return function;
}

void Parser::output(Block& block, ExprPtr part, int line) {
  if (block.empty() || block.back()->act != Act::output) {
    block.push_back(std::make_unique<Stmt>());
    block.back()->line = line;
  }
  block.back()->parts.push_back(std::move(part));
}

// Up to a tag of one of the names, whose name is the current token then; to the end of the source when there are none.
Block Parser::statements(Names ends) {
  Nesting nesting(*this);
  Block block;
  int line = line_before();
  while (current().kind != TokenKind::end) {
    if (current().kind == TokenKind::data) {
      Token data = take();
      output(block, text_constant(std::move(data.text), data.line), data.line);
    } else if (current().kind == TokenKind::variable_begin) {
      int begin = take().line;
      output(block, tuple(true), begin);
      expect(TokenKind::variable_end, "'}}'");
    } else {
      expect(TokenKind::block_begin, "a tag");
      if (current().kind == TokenKind::name && is_one_of(current(), ends)) return block;
      block.push_back(statement());
      expect(TokenKind::block_end, "'%}'");
    }
  }
  if (ends.size() > 0)
    fail_at(line, "the block that begins here doesn't end: '" + std::string(*(ends.end() - 1)) + "' is missing.");
  return block;
}

StmtPtr Parser::start(Act act) {
  auto stmt = std::make_unique<Stmt>();
  stmt->act = act;
  stmt->line = take().line;
  return stmt;
}

StmtPtr Parser::statement() {
  if (current().kind != TokenKind::name) fail_at(current().line, "the name of a tag is expected.");
  const std::string& tag = current().text;
  if (tag == "if") return branch();
  if (tag == "for") return loop();
  if (tag == "set") return set();
  if (tag == "macro") return macro();
  if (tag == "call") return call_block();
  if (tag == "generation") return generation();
  if (tag == "filter") return filter_block();
  if (tag == "with") return with();
  if (tag == "print") return print();
  if (tag == "break") return jump(Act::leave);
  if (tag == "continue") return jump(Act::next);
  if (is_one_of(current(), {"include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"}))
    fail_at(current().line, "the tag '" + tag + "' is not supported.");
  fail_at(current().line, "there is no tag '" + tag + "', or none that could stand here.");
}

StmtPtr Parser::branch() {
  StmtPtr stmt = start(Act::branch);
  stmt->tests.push_back(tuple(false));
  for (;;) {
    expect(TokenKind::block_end, "'%}'");
    stmt->blocks.push_back(statements({"elif", "else", "endif"}));
    std::string tag = take().text;
    if (tag == "endif") return stmt;
    if (stmt->tests.back() == nullptr) fail_at(current().line, "'" + tag + "' can't follow 'else'.");
    stmt->tests.push_back(tag == "elif" ? tuple(false) : nullptr);
  }
}

StmtPtr Parser::loop() {
  StmtPtr stmt = start(Act::loop);
  size_t target_begin = position();
  stmt->target = target(false);
  size_t target_end = position();
  expect_name("in");
  stmt->value = tuple(false);
  if (skip_name("if")) {
    stmt->tests.push_back(expression());
    size_t end = position();
    rewind(target_begin);
    stmt->test_target = target(false);
    check(position() == target_end, "a loop's target parses the same way twice");
    rewind(end);
  } else {
    stmt->tests.push_back(nullptr);
  }
  if (current().is_name("recursive")) fail_at(current().line, "recursive loops are not supported.");
  expect(TokenKind::block_end, "'%}'");
  ++loops_;
  stmt->blocks.push_back(statements({"else", "endfor"}));
  --loops_;
  stmt->blocks.emplace_back();
  if (take().text == "endfor") return stmt;
  expect(TokenKind::block_end, "'%}'");
  stmt->blocks[1] = statements({"endfor"});
  take();
  return stmt;
}

StmtPtr Parser::set() {
  StmtPtr stmt = start(Act::assign);
  stmt->target = target(true);
  if (skip_sign("=")) {
    stmt->value = tuple(true);
    return stmt;
  }
  stmt->act = Act::capture;
  stmt->value = filters(nullptr);
  expect(TokenKind::block_end, "'%}'");
  stmt->blocks.push_back(statements({"endset"}));
  take();
  return stmt;
}

void Parser::signature(Function& function) {
  expect_sign("(");
  while (!current().is_sign(")")) {
    if (!function.parameters.empty()) expect_sign(",");
    if (current().kind != TokenKind::name) fail_at(current().line, "the name of a parameter is expected.");
    std::string name = take().text;
    if (function.parameters.size() >= kMaxNames) fail_at(current().line, "a macro has more than 1000 parameters.");
    if (std::find(function.parameters.begin(), function.parameters.end(), name) != function.parameters.end())
      fail_at(current().line, "the parameter '" + name + "' appears twice.");
    function.parameters.push_back(std::move(name));
    if (skip_sign("="))
      function.defaults.push_back(expression());
    else if (!function.defaults.empty())
      fail_at(current().line, "a parameter without a default can't follow one with a default.");
  }
  take();
}

// The body of a function, and its end tag. A loop around it is not one that it could break.
Block Parser::function_body(std::string_view end) {
  expect(TokenKind::block_end, "'%}'");
  int loops = std::exchange(loops_, 0);
  Block body = statements({end});
  take();
  loops_ = loops;
  return body;
}

StmtPtr Parser::macro() {
  StmtPtr stmt = start(Act::macro);
  stmt->function = std::make_unique<Function>();
  stmt->target = target_name();
  stmt->function->name = stmt->target->name;
  signature(*stmt->function);
  stmt->function->body = function_body("endmacro");
  return stmt;
}

StmtPtr Parser::call_block() {
  StmtPtr stmt = start(Act::call);
  stmt->function = std::make_unique<Function>();
  stmt->function->name = "caller";
  if (current().is_sign("(")) signature(*stmt->function);
  stmt->value = expression();
  if (stmt->value->op != Op::call) fail_at(stmt->line, "'call' must be followed by a call.");
  stmt->function->body = function_body("endcall");
  return stmt;
}

StmtPtr Parser::generation() {
  StmtPtr stmt = start(Act::generation);
  stmt->function = std::make_unique<Function>();
  stmt->function->name = "generation";
  stmt->function->body = function_body("endgeneration");
  return stmt;
}

StmtPtr Parser::filter_block() {
  StmtPtr stmt = start(Act::filter);
  stmt->value = filters(nullptr, true);
  expect(TokenKind::block_end, "'%}'");
  stmt->blocks.push_back(statements({"endfilter"}));
  take();
  return stmt;
}

StmtPtr Parser::with() {
  StmtPtr stmt = start(Act::with);
  while (current().kind != TokenKind::block_end) {
    if (!stmt->parts.empty()) expect_sign(",");
    stmt->parts.push_back(target(false));
    expect_sign("=");
    stmt->tests.push_back(expression());
  }
  expect(TokenKind::block_end, "'%}'");
  stmt->blocks.push_back(statements({"endwith"}));
  take();
  return stmt;
}

StmtPtr Parser::print() {
  StmtPtr stmt = start(Act::output);
  while (current().kind != TokenKind::block_end) {
    if (!stmt->parts.empty()) expect_sign(",");
    stmt->parts.push_back(expression());
  }
  return stmt;
}

StmtPtr Parser::jump(Act act) {
  if (loops_ == 0) fail_at(current().line, "'" + current().text + "' stands outside of a loop.");
  return start(act);
}

}  // namespace

std::unique_ptr<Function> parse_template(std::string_view source) {
  if (source.size() > kMaxSource) fail("The chat template is larger than 4 MiB.");
  if (valid_prefix(source) != source.size()) fail("The chat template is not UTF-8.");
  return Parser(source).whole();
}

}  // namespace unisono::text::jinja
