#include "serve/answer_parser.h"

#include <algorithm>

#include "serve/argument_reader.h"
#include "serve/harmony_parser.h"

namespace unisono::serve {

namespace {

using Kind = AnswerPiece::Kind;
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kPythonTag = "<|python_tag|>";

// The length of the longest end of `text` that `mark` begins with, but isn't.
size_t begun(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; size--)
    if (text.ends_with(mark.substr(0, size))) return size;
  return 0;
}

// Reasoning between two tags, content, then calls.
class TagParser final : public AnswerParser {
 public:
  explicit TagParser(const AnswerReading& reading)
      : reading_(reading), syntax_(*reading.syntax.tools), calling_(reading.tools.choice != ToolCall::Choice::none) {
    if (reading.reasoning == Reasoning::open) enter_thought();
  }

  void push(std::string_view text, std::vector<AnswerPiece>& out) override {
    pending_ += text;
    run(out, false);
  }

  void finish(std::vector<AnswerPiece>& out) override {
    run(out, true);
    if (state_ == State::content || state_ == State::thought) flush_space(out);
  }

 private:
  enum class State : uint8_t {
    beginning,  // reasoning or something else
    thought,    // in reasoning
    opened,     // after it: white space is dropped
    first,      // a call, or content: the syntax has no trigger
    content,    //
    head,       // up to a call's arguments
    arguments,  //
    tail,       // after them
    next,       // another call, or the end
    rest,       // nothing more is expected
  };

  void run(std::vector<AnswerPiece>& out, bool last) {
    std::string_view rest = pending_;
    while (step(rest, out, last)) {
    }
    pending_.erase(0, pending_.size() - rest.size());
  }

  // False: more text is needed.
  bool step(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    switch (state_) {
      case State::beginning: return beginning(rest, out, last);
      case State::thought: return thought(rest, out, last);
      case State::opened: {
        const size_t size = std::min(rest.find_first_not_of(kSpace), rest.size());
        if (!reading_.split_reasoning) emit(out, Kind::content, rest.substr(0, size));
        rest.remove_prefix(size);
        if (rest.empty()) return false;
        begin_body();
        return true;
      }
      case State::first: return first(rest, out, last);
      case State::content: return content(rest, out, last);
      case State::head: return head(rest, out, last);
      case State::arguments: {
        std::string json;
        const bool complete = reader_->read(rest, json);
        if (!json.empty()) add_piece(out, Kind::arguments, json);
        if (complete) state_ = State::tail;
        return complete;
      }
      case State::tail: {
        if (!skip_id(rest)) return false;
        return skip(rest, syntax_.after_arguments, State::next, State::rest);
      }
      case State::next:
        if (!syntax_.between.empty() && rest.starts_with(syntax_.between)) {
          rest.remove_prefix(syntax_.between.size());
          state_ = State::head;
          return true;
        }
        if (!syntax_.between.empty() && syntax_.between.starts_with(rest)) {
          if (last) rest = {};  // cut before the next call
          return false;
        }
        return skip(rest, syntax_.last, State::rest, State::rest);
      case State::rest:
        emit(out, Kind::content, rest);
        rest = {};
        return false;
    }
    return false;
  }

  void begin_body() {
    lead_ = false;
    state_ = calling_ && syntax_.trigger.empty() ? State::first : State::content;
  }

  void enter_thought() {
    lead_ = reading_.split_reasoning;
    state_ = State::thought;
  }

  bool beginning(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    if (reading_.reasoning != Reasoning::maybe) {
      begin_body();
      return true;
    }
    const std::string_view mark = reading_.syntax.reasoning->begin;
    const size_t space = std::min(rest.find_first_not_of(kSpace), rest.size());
    const std::string_view text = rest.substr(space);
    if (text.starts_with(mark)) {
      if (!reading_.split_reasoning) emit(out, Kind::content, rest.substr(0, space + mark.size()));
      rest.remove_prefix(space + mark.size());
      enter_thought();
      return true;
    }
    if (mark.starts_with(text) && !last) return false;
    begin_body();
    return true;
  }

  bool thought(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    const Kind kind = reading_.split_reasoning ? Kind::reasoning : Kind::content;
    const std::string_view mark = reading_.syntax.reasoning->end;
    const auto [text, found] = take_until(rest, mark, last);
    emit(out, kind, text);
    if (!found) return false;
    if (!reading_.split_reasoning) {
      emit(out, kind, mark);
      flush_space(out);
    }
    space_.clear();
    state_ = State::opened;
    return true;
  }

  bool first(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    std::string_view text = rest;
    if (text.starts_with(kPythonTag))
      text.remove_prefix(kPythonTag.size());
    else if (kPythonTag.starts_with(text) && !last)
      return false;
    const int fit = fitting_head(text, last);
    if (fit == kMayFit) return false;
    if (fit < 0) {
      state_ = State::rest;
      return true;
    }
    rest = text;
    begin_call(rest, out, static_cast<size_t>(fit));
    return true;
  }

  bool content(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    const auto [text, found] = take_until(rest, calling_ ? syntax_.trigger : std::string_view(), last);
    emit(out, Kind::content, text);
    if (!found) return false;
    lead_text_ = syntax_.first;
    state_ = State::head;
    return true;
  }

  static constexpr int kMayFit = -1, kCantFit = -2;
  // The tool whose head stands there: one tool's name may be the beginning of another's.
  int fitting_head(std::string_view text, bool last) const {
    int fit = kCantFit;
    size_t longest = 0;
    for (size_t i = 0; i < reading_.tools.callable.size(); i++) {
      const std::string head = head_of(i);
      if (text.size() < head.size() && std::string_view(head).starts_with(text) && !last) return kMayFit;
      if (!text.starts_with(head) || head.size() < longest) continue;
      fit = static_cast<int>(i);
      longest = head.size();
    }
    return fit;
  }
  std::string head_of(size_t tool) const {
    return std::string(lead_text_) + std::string(syntax_.before_name) + reading_.tools.callable[tool].name +
           std::string(syntax_.before_arguments);
  }

  bool head(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    const int fit = fitting_head(rest, last);
    if (fit == kMayFit) return false;
    if (fit >= 0) {
      begin_call(rest, out, static_cast<size_t>(fit));
      return true;
    }
    // Not a call after all, or cut off before it could be one.
    emit(out, Kind::content, called_ ? syntax_.between : syntax_.trigger);
    state_ = State::rest;
    return true;
  }

  void begin_call(std::string_view& rest, std::vector<AnswerPiece>& out, size_t tool) {
    rest.remove_prefix(head_of(tool).size());
    space_.clear();
    out.push_back({Kind::call, reading_.tools.callable[tool].name});
    reader_ = make_argument_reader(syntax_, reading_.tools.callable[tool]);
    lead_text_ = {};
    called_ = true;
    state_ = State::arguments;
  }

  // Past the id that some models give to their calls. False: it hasn't come whole.
  bool skip_id(std::string_view& rest) const {
    const std::string_view mark = syntax_.before_id;
    if (mark.empty() || !rest.starts_with(mark)) return mark.empty() || !mark.starts_with(rest);
    const size_t end = rest.find(syntax_.after_id, mark.size());
    if (end == rest.npos) return false;
    rest.remove_prefix(end + syntax_.after_id.size());
    return true;
  }

  // Past `mark`.
  bool skip(std::string_view& rest, std::string_view mark, State found, State missed) {
    if (rest.starts_with(mark)) {
      rest.remove_prefix(mark.size());
      state_ = found;
      return true;
    }
    if (mark.starts_with(rest)) return false;
    state_ = missed;
    return true;
  }

  // White space at the end is held back where a tag may follow, and dropped if one does.
  void emit(std::vector<AnswerPiece>& out, Kind kind, std::string_view text) {
    if (lead_) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return;
    lead_ = false;
    const bool holds = state_ == State::thought || (state_ == State::content && calling_);
    const size_t size = holds ? text.find_last_not_of(kSpace) + 1 : text.size();
    if (size > 0) {
      space_kind_ = kind;
      flush_space(out);
      add_piece(out, kind, text.substr(0, size));
    }
    space_kind_ = kind;
    space_ += text.substr(size);
  }
  void flush_space(std::vector<AnswerPiece>& out) {
    if (!space_.empty()) add_piece(out, space_kind_, space_);
    space_.clear();
  }

  const AnswerReading& reading_;
  const ToolSyntax& syntax_;
  const bool calling_;
  State state_ = State::beginning;
  std::string pending_{}, space_{};
  Kind space_kind_ = Kind::content;
  std::string_view lead_text_{};  // before the next call's head
  bool lead_ = false;             // white space is dropped until something else comes
  bool called_ = false;
  std::unique_ptr<ArgumentReader> reader_{};
};

}  // namespace

std::unique_ptr<AnswerParser> make_answer_parser(const AnswerReading& reading) {
  if (reading.syntax.tools->values == ToolSyntax::Values::harmony) return make_harmony_parser(reading);
  return std::make_unique<TagParser>(reading);
}

void add_piece(std::vector<AnswerPiece>& out, AnswerPiece::Kind kind, std::string_view text) {
  if (!out.empty() && out.back().kind == kind && kind != Kind::call) {
    out.back().text += text;
  } else {
    out.push_back({kind, std::string(text)});
  }
}

Until take_until(std::string_view& rest, std::string_view mark, bool last) {
  const size_t found = mark.empty() ? rest.npos : rest.find(mark);
  const size_t size = found != rest.npos ? found : rest.size() - (last ? 0 : begun(rest, mark));
  const std::string_view text = rest.substr(0, size);
  rest.remove_prefix(found != rest.npos ? size + mark.size() : size);
  return {text, found != rest.npos};
}

}  // namespace unisono::serve
