// An answer's text as it comes, taken apart: reasoning, content, calls of tools and their arguments. Linear in the text;
// however the text is cut into pieces, the parts are the same. It judges nothing: what may be written is answer_shape.h's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer_shape.h"

namespace unisono::serve {

struct AnswerPiece {
  enum class Kind : uint8_t {
    reasoning,
    content,
    call,       // a call begins; `text` is the tool's name
    arguments,  // of the call that began last: a further part of a JSON text
  };
  Kind kind = Kind::content;
  std::string text{};
};

// How one request's answers are read.
struct AnswerReading {
  ChatSyntax syntax{};
  ToolCall tools{};
  Reasoning reasoning = Reasoning::none;
  bool split_reasoning = true;  // false: it stays in the content, with what stands around it
  bool tell_reasoning = true;   // false: it is left out
};

class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  // Appends what is certain.
  virtual void push(std::string_view text, std::vector<AnswerPiece>& out) = 0;
  // The answer ended here.
  virtual void finish(std::vector<AnswerPiece>& out) = 0;
};

// The reading must outlive the parser.
std::unique_ptr<AnswerParser> make_answer_parser(const AnswerReading& reading);

// A piece that goes on where the last one ended becomes one with it.
void add_piece(std::vector<AnswerPiece>& out, AnswerPiece::Kind kind, std::string_view text);

// What stands in `rest` before `mark`, taken off it with the mark. Where the mark isn't there: all of it, but for an end
// that the mark may still grow from; the `last` of an answer grows no more.
struct Until {
  std::string_view text;
  bool found;
};
Until take_until(std::string_view& rest, std::string_view mark, bool last);

}  // namespace unisono::serve
