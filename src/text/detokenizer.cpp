#include "text/detokenizer.h"

#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace unisono::text {

namespace {

// Moves what is certain from `waiting` to the end of `out`. Broken bytes become U+FFFD: one for each maximal part, or, as
// SentencePiece has it, one for each byte.
void settle(std::string& waiting, bool each_byte, bool at_end, std::string& out) {
  std::string_view rest = waiting;
  while (!rest.empty()) {
    const size_t valid = valid_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Step step = next_step(rest);
    if (step.kind == Utf8Step::Kind::incomplete && !at_end) break;
    for (int i = 0; i < (each_byte ? step.bytes : 1); i++) out += kReplacement;
    rest.remove_prefix(step.bytes);
  }
  waiting.erase(0, waiting.size() - rest.size());
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool special, bool at_start)
    : tokenizer_(&tokenizer), special_(special), strip_space_(at_start && tokenizer.impl_->space_prefix) {}

std::string Detokenizer::push(TokenId id) {
  if (id < 0 || id >= tokenizer_->vocab_size() || (!special_ && tokenizer_->is_control(id))) return {};
  std::string_view bytes = tokenizer_->vocabulary()[static_cast<size_t>(id)];
  if (strip_space_ && !bytes.empty()) {
    if (bytes.front() == ' ') bytes.remove_prefix(1);
    strip_space_ = false;
  }
  waiting_ += bytes;
  std::string out;
  settle(waiting_, tokenizer_->impl_->pieces.has_value(), false, out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  settle(waiting_, tokenizer_->impl_->pieces.has_value(), true, out);
  return out;
}

std::string detokenize(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool special, bool at_start) {
  Detokenizer detokenizer(tokenizer, special, at_start);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

}  // namespace unisono::text
