// Pieces of text: each valid, together the whole.
#include "text/detokenizer.h"

#include <gmock/gmock.h>

#include "support/real_files.h"
#include "text/random_strings.h"
#include "text/small_vocabularies.h"
#include "text/unicode.h"
#include "text/vocabulary_file.h"

namespace unisono::text {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool special, bool at_start) {
  Detokenizer detokenizer(tokenizer, special, at_start);
  std::vector<std::string> out;
  for (const TokenId id : ids) out.push_back(detokenizer.push(id));
  out.push_back(detokenizer.finish());
  return out;
}

TEST(Detokenizer, WaitsForWholeCharacters) {
  const SmallVocabulary vocabulary = small_byte_bpe();
  const Tokenizer tokenizer = Tokenizer::create(vocabulary.view()).value();
  EXPECT_THAT(pieces(tokenizer, {0xF0, 0x9F, 0x99, 0x82, 'a'}, false, true),
              ElementsAre("", "", "", "\U0001F642", "a", ""));
  EXPECT_THAT(pieces(tokenizer, {0xF0, 0x9F, 'a', 0xE2, 0x82}, false, true),
              ElementsAre("", "", "\uFFFDa", "", "", "\uFFFD"));
  EXPECT_THAT(pieces(tokenizer, {0x80, 0xEF, 0xBF, 0xBD, 0xC2}, false, true),
              ElementsAre("\uFFFD", "", "", "\uFFFD", "", "\uFFFD"));
}

TEST(Detokenizer, GivesOneReplacementPerByteForSentencePiece) {
  const SmallVocabulary vocabulary = small_sentencepiece();
  const Tokenizer tokenizer = Tokenizer::create(vocabulary.view()).value();
  EXPECT_THAT(pieces(tokenizer, {3 + 0xF0, 3 + 0x9F, 3 + 'a', 3 + 0xE2, 3 + 0x82}, false, true),
              ElementsAre("", "", "\uFFFD\uFFFDa", "", "", "\uFFFD\uFFFD"));
}

TEST(Detokenizer, DropsTheSpaceBeforeATextOnce) {
  const SmallVocabulary vocabulary = small_sentencepiece();
  const Tokenizer tokenizer = Tokenizer::create(vocabulary.view()).value();
  const std::vector<TokenId> ids = tokenizer.encode("the the", true, true);
  EXPECT_EQ(detokenize(tokenizer, ids), "the the");
  EXPECT_EQ(detokenize(tokenizer, ids, false, false), " the the");
  EXPECT_EQ(detokenize(tokenizer, ids, true), "<s> the the");
}

TEST(Detokenizer, ShowsControlTokensWhenAsked) {
  const SmallVocabulary vocabulary = small_byte_bpe();
  const Tokenizer tokenizer = Tokenizer::create(vocabulary.view()).value();
  const std::vector<TokenId> ids = tokenizer.encode("<|start|>hello<think><|end|>", false, true);
  EXPECT_EQ(detokenize(tokenizer, ids), "hello<think>");
  EXPECT_EQ(detokenize(tokenizer, ids, true), "<|start|>hello<think><|end|>");
  EXPECT_EQ(detokenize(tokenizer, {-1, 9999, 'a'}), "a");
}

// Any ids: every piece is valid, and the pieces are the whole of detokenize() and of the bytes, broken parts replaced.
TEST(Detokenizer, AlwaysGivesValidPieces) {
  for (const SmallVocabulary& vocabulary : {small_byte_bpe(), small_sentencepiece()}) {
    const Tokenizer tokenizer = Tokenizer::create(vocabulary.view()).value();
    SplitMix rng(11);
    for (int i = 0; i < 3000; i++) {
      std::vector<TokenId> ids;
      for (uint64_t n = rng.below(30); n > 0; n--)
        ids.push_back(static_cast<TokenId>(rng.below(static_cast<uint64_t>(tokenizer.vocab_size()))));
      std::string together;
      for (const std::string& piece : pieces(tokenizer, ids, true, false)) {
        ASSERT_EQ(valid_prefix(piece), piece.size());
        together += piece;
      }
      ASSERT_EQ(together, detokenize(tokenizer, ids, true, false));
    }
  }
}

// Whatever was encoded comes back, but for what the tokenizer can't keep: composed letters, U+2581, missing bytes.
void round_trips(const Tokenizer& tokenizer, bool composes, bool marks) {
  for (uint64_t i = 0; i < 5000; i++) {
    std::string text = random_string(5, i);
    if (composes) text = nfc(text);
    for (size_t at; marks && (at = text.find(kSpaceMark)) != std::string::npos;) text.replace(at, kSpaceMark.size(), " ");
    ASSERT_EQ(detokenize(tokenizer, tokenizer.encode(text, true, false)), text) << i;
  }
}

TEST(RoundTrip, HoldsForSmallVocabularies) {
  for (const char* pre :
       {"gpt-2", "llama-bpe", "qwen2", "smollm", "deepseek-v3", "gpt-4o", "falcon", "tekken", "command-r"}) {
    const SmallVocabulary vocabulary = small_byte_bpe(pre);
    round_trips(Tokenizer::create(vocabulary.view()).value(),
                pre == std::string("qwen2") || pre == std::string("command-r"), false);
  }
  SmallVocabulary vocabulary = small_sentencepiece();
  round_trips(Tokenizer::create(vocabulary.view()).value(), false, true);
  vocabulary.spec.add_space_prefix = false;
  round_trips(Tokenizer::create(vocabulary.view()).value(), false, true);
}

TEST(RoundTrip, HoldsForRealVocabularies) {
  for (const char* name : {"gpt-2", "llama-bpe", "llama-spm", "qwen2"}) {
    SKIP_WITHOUT_SHARED(path, std::string("data/vocab/ggml-vocab-") + name + ".gguf");
    const VocabularyFile file = open_vocabulary(path);
    round_trips(tokenizer_of(file), name == std::string("qwen2"), name == std::string("llama-spm"));
  }
}

// "삥" and "뽕" come in two and three tokens: what the tokenizers library's own streaming test expects.
TEST(RoundTrip, StreamsLlama3sKorean) {
  SKIP_WITHOUT_SHARED(path, "data/vocab/ggml-vocab-llama-bpe.gguf");
  const VocabularyFile file = open_vocabulary(path);
  const Tokenizer tokenizer = tokenizer_of(file);
  EXPECT_THAT(pieces(tokenizer, {80690, 98, 167, 121, 243}, false, true), ElementsAre("", "\uC0A5", "", "", "\uBF55", ""));
}

}  // namespace
}  // namespace unisono::text
