// A template's source as tokens, with white space controlled as Hugging Face sets Jinja: trim_blocks, lstrip_blocks, one
// newline at the end dropped. Knows no grammar.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

enum class TokenKind : uint8_t {
  data,            // text between tags; never empty
  block_begin,     // {%
  block_end,       // %}
  variable_begin,  // {{
  variable_end,    // }}
  name,
  string,  // text is its value
  integer,
  real,
  punctuation,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 1;
  std::string text{};
  Value number{};

  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  bool is_name(std::string_view t) const { return is(TokenKind::name, t); }
  bool is_sign(std::string_view t) const { return is(TokenKind::punctuation, t); }
};

// The last token is `end`. Throws Failure with the line: characters that belong to no token, brackets that don't match,
// comments, raw blocks and strings that don't end, escapes that mean nothing.
std::vector<Token> tokenize(std::string_view source);

// "Line 3: what."
[[noreturn]] void fail_at(int line, const std::string& what);

}  // namespace unisono::text::jinja
