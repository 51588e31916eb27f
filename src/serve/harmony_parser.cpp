#include "serve/harmony_parser.h"

#include <algorithm>

namespace unisono::serve {

namespace {

using Kind = AnswerPiece::Kind;
constexpr std::string_view kMessage = "<|message|>", kEnd = "<|end|>";
constexpr size_t kMaxHeader = 256;

class HarmonyParser final : public AnswerParser {
 public:
  explicit HarmonyParser(const AnswerReading& reading) : reading_(reading) {}

  void push(std::string_view text, std::vector<AnswerPiece>& out) override {
    pending_ += text;
    run(out, false);
  }
  void finish(std::vector<AnswerPiece>& out) override { run(out, true); }

 private:
  void run(std::vector<AnswerPiece>& out, bool last) {
    std::string_view rest = pending_;
    while (step(rest, out, last)) {
    }
    pending_.erase(0, pending_.size() - rest.size());
  }

  bool step(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    if (!in_body_) return header(rest, out, last);
    const auto [text, found] = take_until(rest, kEnd, last);
    if (!text.empty()) add_piece(out, kind_, text);
    in_body_ = !found;
    return found;
  }

  bool header(std::string_view& rest, std::vector<AnswerPiece>& out, bool last) {
    constexpr size_t kLongest = kMaxHeader + kMessage.size();
    if (const size_t found = rest.substr(0, kLongest).find(kMessage); found != rest.npos) {
      begin(rest.substr(0, found), out);
      rest.remove_prefix(found + kMessage.size());
      return true;
    }
    // Text without any channel is content.
    if (rest.empty() || (rest.size() < kLongest && !(last && rest.find("<|") == rest.npos))) return false;
    kind_ = Kind::content;
    in_body_ = true;
    return true;
  }

  void begin(std::string_view header, std::vector<AnswerPiece>& out) {
    in_body_ = true;
    const bool thinks = header.find("<|channel|>analysis") != header.npos;
    kind_ = thinks && reading_.split_reasoning ? Kind::reasoning : Kind::content;
    constexpr std::string_view kTo = "to=functions.";
    const size_t to = header.find(kTo);
    if (to == header.npos) return;
    std::string_view name = header.substr(to + kTo.size());
    name = name.substr(0, name.find_first_of(" <"));
    // A tool that the client doesn't have is not called: what was meant for it is text.
    if (std::ranges::find(reading_.tools.callable, name, &Tool::name) == reading_.tools.callable.end()) return;
    out.push_back({Kind::call, std::string(name)});
    kind_ = Kind::arguments;
  }

  const AnswerReading& reading_;
  std::string pending_{};
  Kind kind_ = Kind::content;
  bool in_body_ = false;
};

}  // namespace

std::unique_ptr<AnswerParser> make_harmony_parser(const AnswerReading& reading) {
  return std::make_unique<HarmonyParser>(reading);
}

}  // namespace unisono::serve
