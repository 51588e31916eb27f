// Any text, marked in any way, through tokenizers of each family; and any bytes as a vocabulary. What must hold: users
// write no control tokens, text comes back, pieces are valid UTF-8.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/small_vocabularies.h"
#include "text/unicode.h"

namespace unisono::text {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

struct Subject {
  SmallVocabulary vocabulary{};
  Tokenizer tokenizer;
  bool keeps_text = false;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> made = [] {
    std::vector<Subject> list;
    const auto add = [&](SmallVocabulary&& vocabulary, bool keeps_text) {
      TokenizerSpec spec = vocabulary.view();
      // Moving the vocabulary moves its vectors, not the texts in them.
      list.push_back({std::move(vocabulary), Tokenizer::create(std::move(spec)).value(), keeps_text});
    };
    for (const char* pre :
         {"gpt-2", "llama-bpe", "smollm", "deepseek-v3", "deepseek-llm", "deepseek-coder", "falcon", "gpt-4o", "tekken"})
      add(small_byte_bpe(pre), true);
    for (const char* pre : {"qwen2", "qwen35", "command-r", "mpt"}) add(small_byte_bpe(pre), false);
    add(small_sentencepiece(), false);
    return list;
  }();
  return made;
}

size_t count_control(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  size_t n = 0;
  for (const TokenId id : ids) n += tokenizer.is_control(id) ? 1 : 0;
  return n;
}

void encode(const Subject& subject, std::string_view marks, std::string text) {
  const Tokenizer& tokenizer = subject.tokenizer;
  require(count_control(tokenizer, tokenizer.encode(text, false, false)) == 0);
  const MarkedText all{text, {{0, text.size()}}};
  const std::vector<TokenId> as_user = tokenizer.encode(all);
  require(as_user == tokenizer.encode(text, false, false));
  const std::vector<TokenId> as_template = tokenizer.encode(MarkedText{text, {}});
  require(as_template == tokenizer.encode(text, false, true));

  MarkedText marked{text, {}};
  size_t at = 0;
  for (size_t i = 0; i + 1 < marks.size(); i += 2) {
    const size_t begin = std::min(text.size(), at + static_cast<unsigned char>(marks[i]) % 16);
    const size_t end = std::min(text.size(), begin + static_cast<unsigned char>(marks[i + 1]) % 16);
    marked.from_user.push_back({begin, end});
    at = end;
  }
  require(count_control(tokenizer, tokenizer.encode(marked)) <= count_control(tokenizer, as_template) + marks.size());

  std::string together;
  Detokenizer detokenizer(tokenizer, true, true);
  for (const TokenId id : as_template) {
    const std::string piece = detokenizer.push(id);
    require(valid_prefix(piece) == piece.size());
    together += piece;
  }
  together += detokenizer.finish();
  if (subject.keeps_text && valid_prefix(text) == text.size()) require(together == text);
}

// A vocabulary of pieces of the input: created or refused, never more.
void create(std::string_view bytes) {
  SmallVocabulary vocabulary = bytes[0] & 1 ? small_byte_bpe(bytes[0] & 2 ? "llama-bpe" : "gpt-2") : small_sentencepiece();
  const std::string text(bytes);
  for (size_t at = 1; at + 3 < bytes.size();) {
    const auto length = static_cast<size_t>(bytes[at] & 15);
    const auto type = static_cast<TokenType>(static_cast<unsigned char>(bytes[at + 1]) % 8);
    const std::string token(bytes.substr(at + 2, length));
    if (bytes[at] & 16)
      vocabulary.merges.push_back(token);
    else if (bytes[at] & 32)
      vocabulary.tokens[static_cast<unsigned char>(bytes[at + 1])] = token;
    else
      vocabulary.add(token, type, static_cast<float>(bytes[at + 1]));
    at += 2 + length;
  }
  const Result<Tokenizer> made = Tokenizer::create(vocabulary.view());
  if (!made) return;
  require(count_control(*made, made->encode(text, false, false)) == 0);
  const std::string back = detokenize(*made, made->encode(text, true, true), true);
  require(valid_prefix(back) == back.size());
}

}  // namespace
}  // namespace unisono::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace unisono::text;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) return 0;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  if (choice >= 200) {
    create(bytes.substr(1));
    return 0;
  }
  const size_t marks = std::min<size_t>(static_cast<unsigned char>(bytes[1]) % 16, bytes.size() - 2);
  encode(subjects()[choice % subjects().size()], bytes.substr(2, marks), std::string(bytes.substr(2 + marks)));
  return 0;
}
