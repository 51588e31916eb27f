// Any text as an answer, in any syntax of calls and reasoning: however it is cut into pieces, the same comes out, in whole
// characters, and of what isn't a call or a mark nothing is lost and nothing is told twice.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "serve/answer_parser.h"
#include "text/unicode.h"

namespace unisono::serve {
namespace {

using Kind = AnswerPiece::Kind;

constexpr ReasoningSyntax kReasonings[] = {{"<think>", "</think>"}, {"<|channel>thought\n", "<channel|>"}};
constexpr const char* kParameters =
    R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})";

AnswerReading reading(uint8_t syntax, uint8_t how) {
  AnswerReading out;
  const auto all = tool_syntaxes();
  out.syntax.tools = &all[syntax % all.size()];
  out.reasoning = static_cast<Reasoning>(how % 3);
  out.syntax.reasoning = &kReasonings[how / 3 % 2];
  out.split_reasoning = (how & 64) != 0;
  if ((how & 128) == 0) return out;
  out.tools.choice = ToolCall::Choice::free;
  static const JsonObject parameters = parse_json(kParameters)->as_object();
  for (const char* name : {"f", "fly", "get_weather"}) out.tools.callable.push_back({name, parameters, "tools"});
  return out;
}

// ASCII stands for itself; the other bytes for what a syntax writes, and for longer characters.
std::string answer(const AnswerReading& how, const uint8_t* data, size_t size) {
  std::vector<std::string_view> words = texts_of(*how.syntax.tools);
  words.insert(words.end(),
               {how.syntax.reasoning->begin, how.syntax.reasoning->end, "f", "fly", "get_weather", "city",
                "analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>commentary to=functions.fly <|message|>",
                "assistant", "\u00e9", "\uff5c", "\U0001f600", "{\"city\": \"x\"}", "\\\""});
  std::string out;
  for (size_t i = 0; i < size; i++) {
    if (data[i] < 0x80) {
      out += static_cast<char>(data[i]);
    } else {
      out += words[(data[i] - 0x80u) % words.size()];
    }
  }
  return out;
}

// In pieces as long as the cuts say, of whole characters; what goes on is one piece.
std::vector<AnswerPiece> parsed(const AnswerReading& how, std::string_view text, std::string_view cuts) {
  const auto parser = make_answer_parser(how);
  std::vector<AnswerPiece> all;
  const auto take = [&](std::vector<AnswerPiece>& pieces) {
    for (const AnswerPiece& piece : pieces) {
      check(text::valid_prefix(piece.text) == piece.text.size(), "pieces are whole characters");
      check(!piece.text.empty(), "a piece says something");
      if (piece.kind == Kind::call) {
        all.push_back(piece);
      } else {
        add_piece(all, piece.kind, piece.text);
      }
    }
    pieces.clear();
  };
  std::vector<AnswerPiece> pieces;
  for (size_t i = 0; !text.empty(); i++) {
    size_t size = cuts.empty() ? text.size() : 1 + static_cast<unsigned char>(cuts[i % cuts.size()]) % 16;
    size = std::min(size, text.size());
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) size++;
    parser->push(text.substr(0, size), pieces);
    take(pieces);
    text.remove_prefix(size);
  }
  parser->finish(pieces);
  take(pieces);
  return all;
}

std::string without_space(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](char c) { return std::string_view(" \t\r\n").find(c) != std::string_view::npos; });
  return out;
}

// All of the text is told, but for marks and, where something is split off, the white space around it.
void check_told(const AnswerReading& how, std::string_view text, const std::vector<AnswerPiece>& pieces) {
  using Values = ToolSyntax::Values;
  const Values values = how.syntax.tools->values;
  const bool as_written = values == Values::json || values == Values::harmony;  // calls too
  std::string reasoning, content, told;
  bool calls = false;
  for (const AnswerPiece& piece : pieces) {
    check(piece.kind != Kind::arguments || calls, "arguments are a call's");
    if (piece.kind == Kind::call) {
      calls = true;
      check(std::ranges::find(how.tools.callable, piece.text, &Tool::name) != how.tools.callable.end(), "a known tool");
    }
    if (piece.kind == Kind::reasoning) reasoning += piece.text;
    if (piece.kind == Kind::content) content += piece.text;
    if (as_written || piece.kind == Kind::reasoning || piece.kind == Kind::content) told += piece.text;
  }
  size_t at = 0;
  for (const char c : told) {
    at = text.find(c, at);
    check(at != text.npos, "what is told was said, in this order");
    at++;
  }
  check(how.split_reasoning || reasoning.empty(), "thoughts stay in the content");
  if (calls || values == Values::harmony) return;
  if (!how.split_reasoning || how.reasoning == Reasoning::none) return check(content == text, "all is content");
  const std::string said = without_space(text), thought = without_space(reasoning), rest = without_space(content);
  const std::string begin = how.reasoning == Reasoning::open ? "" : without_space(how.syntax.reasoning->begin);
  const std::string end = without_space(how.syntax.reasoning->end);
  const bool cut = said == begin + thought && rest.empty(), whole = said == begin + thought + end + rest;
  check(cut || whole || (thought.empty() && said == rest), "thoughts and content are all");
}

}  // namespace
}  // namespace unisono::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace unisono::serve;
  constexpr size_t kHead = 6;  // syntax, reading, cuts
  if (size < kHead) return 0;
  const AnswerReading how = reading(data[0], data[1]);
  const std::string text = answer(how, data + kHead, size - kHead);
  const auto whole = parsed(how, text, "");
  const auto cut = parsed(how, text, {reinterpret_cast<const char*>(data + 2), kHead - 2});
  unisono::check(
      std::ranges::equal(whole, cut, [](const auto& a, const auto& b) { return a.kind == b.kind && a.text == b.text; }),
      "however it is cut, the same comes out");
  check_told(how, text, whole);
  return 0;
}
