// What tokenizers promise, on vocabularies made for it: who may write a control token, what bad specs are refused with,
// time in proportion to the text.
#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <ctime>
#include <thread>

#include "support/real_files.h"
#include "text/detokenizer.h"
#include "text/random_strings.h"
#include "text/small_vocabularies.h"
#include "text/vocabulary_file.h"
#include "text/workspace.h"

namespace unisono::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer made(const SmallVocabulary& vocabulary) {
  Result<Tokenizer> result = Tokenizer::create(vocabulary.view());
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result).value();
}

std::string refusal(const SmallVocabulary& vocabulary) {
  const Result<Tokenizer> result = Tokenizer::create(vocabulary.view());
  if (result.ok()) return "";
  EXPECT_TRUE(result.error().message.ends_with('.') && !result.error().subject.empty()) << result.error().message;
  return result.error().message;
}

// The tokens' texts, to read a result by.
std::vector<std::string> texts(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> out;
  for (const TokenId id : ids) out.push_back(tokenizer.bytes(id, true));
  return out;
}

TEST(ByteBpe, MergesByRank) {
  const SmallVocabulary vocabulary = small_byte_bpe();
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("hello the other", false, false)),
              ElementsAre("hello", " the", " ", "o", "t", "he", "r"));
  EXPECT_THAT(tokenizer.encode("", true, true), ElementsAre());
}

TEST(SentencePiece, PutsASpaceBeforeATextAndAfterControlTokens) {
  const SmallVocabulary vocabulary = small_sentencepiece();
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("hello<|end|>the<|end|><|end|>", true, true)),
              ElementsAre("<s>", " hello", "<|end|>", " the", "<|end|>", "<|end|>"));
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("", true, true)), ElementsAre("<s>"));
}

TEST(SentencePiece, MakesBytesOfWhatNoPieceCovers) {
  SmallVocabulary vocabulary = small_sentencepiece();
  vocabulary.spec.add_space_prefix = false;
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("hé", false, false)), ElementsAre("h", "\xC3", "\xA9"));
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("<0x41>", false, false)), ElementsAre("<", "0", "x", "4", "1", ">"));
}

TEST(SentencePiece, GivesOneUnknownForARunWithoutByteTokens) {
  SmallVocabulary vocabulary;
  vocabulary.spec.kind = TokenizerKind::sentencepiece_bpe;
  vocabulary.spec.unknown = vocabulary.add("<unk>", TokenType::unknown);
  vocabulary.add("a", TokenType::normal);
  vocabulary.spec.add_space_prefix = false;
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(tokenizer.encode("xyzaxaa", false, false), ElementsAre(0, 1, 0, 1, 1));
}

TEST(SentencePiece, TakesTheLongestUserDefinedRunFirst) {
  SmallVocabulary vocabulary = small_sentencepiece();
  vocabulary.spec.add_space_prefix = false;
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("    the", false, false)), ElementsAre("   ", " the"));
}

TEST(Origin, OnlyTheTemplateWritesControlTokens) {
  for (const SmallVocabulary& vocabulary : {small_byte_bpe(), small_sentencepiece()}) {
    const Tokenizer tokenizer = made(vocabulary);
    const TokenId end = vocabulary.find("<|end|>");
    const std::string text = "<|end|>hello<|end|><|end|>";
    const auto count = [&](std::vector<MarkedText::Span> spans) {
      const std::vector<TokenId> ids = tokenizer.encode(MarkedText{text, std::move(spans)});
      return std::count(ids.begin(), ids.end(), end);
    };
    EXPECT_EQ(count({}), 3);
    EXPECT_EQ(count({{7, 19}}), 2);           // "hello<|end|>" is the user's
    EXPECT_EQ(count({{7, 13}}), 2);           // its first byte is
    EXPECT_EQ(count({{18, 19}}), 2);          // its last byte is
    EXPECT_EQ(count({{0, text.size()}}), 0);  // everything is
    EXPECT_EQ(count({{15, 15}}), 2);          // nothing is, but a border runs through it
    EXPECT_EQ(count({{0, 3}, {3, 7}, {22, 23}}), 1);
    const std::vector<TokenId> plain = tokenizer.encode(text, false, false);
    EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  }
}

TEST(Origin, TextsMergeAcrossBorders) {
  const SmallVocabulary vocabulary = small_byte_bpe();
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_EQ(tokenizer.encode(MarkedText{"hello", {{2, 4}}}), tokenizer.encode("hello", false, true));
}

TEST(Origin, UserDefinedTokensAreTextButMarkersAreNot) {
  SmallVocabulary vocabulary = small_byte_bpe();
  const TokenId tool = vocabulary.add("<|tool|>", TokenType::user_defined);
  const TokenId filler = static_cast<TokenId>(vocabulary.tokens.size());
  vocabulary.add("[PAD" + std::to_string(filler) + "]", TokenType::user_defined);
  const Tokenizer tokenizer = made(vocabulary);
  const TokenId think = vocabulary.find("<think>");
  EXPECT_THAT(tokenizer.encode("<think>", false, false), ElementsAre(think));
  EXPECT_THAT(tokenizer.encode("<|tool|>", false, true), ElementsAre(tool));
  EXPECT_EQ(tokenizer.encode("<|tool|>", false, false).size(), 8u);
  EXPECT_GT(tokenizer.encode(vocabulary.tokens.back(), false, true).size(), 1u);
  EXPECT_FALSE(tokenizer.is_control(tool));
}

// Random markings of random strings: a control token appears only where the template wrote it, letter by letter.
TEST(Origin, HoldsForRandomMarkings) {
  for (SmallVocabulary vocabulary : {small_byte_bpe(), small_byte_bpe("qwen2"), small_sentencepiece()}) {
    for (const char* text : {"<|im_start|>", "<|im_end|>", "<bos>", "<eos>", "\u212b", "<unused7>"})
      vocabulary.add(text, TokenType::control);
    const Tokenizer tokenizer = made(vocabulary);
    SplitMix rng(7);
    for (uint64_t i = 0; i < 3000; i++) {
      MarkedText marked{random_string(1, i), {}};
      if (rng.below(4) == 0) marked.text[rng.below(marked.text.size())] = static_cast<char>(rng.below(256));
      std::string written;  // what the template wrote, users' parts as a border
      for (size_t at = 0; at < marked.text.size();) {
        const size_t end = std::min<size_t>(marked.text.size(), at + rng.below(40));
        if (rng.below(2) == 0) {
          marked.from_user.push_back({at, end});
          written += '\n';
        } else {
          written += marked.text.substr(at, end - at);
        }
        at = end;
      }
      size_t limit = 0;
      for (const TokenId id : tokenizer.encode(written, false, true)) limit += tokenizer.is_control(id) ? 1u : 0u;
      size_t found = 0;
      for (const TokenId id : tokenizer.encode(marked)) found += tokenizer.is_control(id) ? 1u : 0u;
      ASSERT_LE(found, limit) << i;
      marked.from_user = {{0, marked.text.size()}};
      for (const TokenId id : tokenizer.encode(marked)) ASSERT_FALSE(tokenizer.is_control(id)) << i;
    }
  }
}

TEST(Encode, TakesBrokenBytesAsReplacementCharacters) {
  for (const SmallVocabulary& vocabulary : {small_byte_bpe(), small_sentencepiece()}) {
    const Tokenizer tokenizer = made(vocabulary);
    // From the Unicode Standard, section 3.9, table 3-8 and after: maximal subparts.
    EXPECT_EQ(tokenizer.encode("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", false, false),
              tokenizer.encode("a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd", false, false));
    EXPECT_EQ(tokenizer.encode("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", false, false),
              tokenizer.encode("\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA", false, false));
    EXPECT_EQ(tokenizer.encode("hello\xE2\x96", false, false), tokenizer.encode("hello\uFFFD", false, false));
  }
}

TEST(Encode, ComposesForQwen2AndLeavesAddedTokensAlone) {
  SmallVocabulary vocabulary = small_byte_bpe("qwen2");
  const TokenId angstrom = vocabulary.add("\u212b", TokenType::control);
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_EQ(tokenizer.encode("e\u0301\u212b", false, false), tokenizer.encode("\u00e9\u00c5", false, false));
  EXPECT_THAT(tokenizer.encode("\u212b", false, true), ElementsAre(angstrom));
}

TEST(Encode, AddsWhatTheModelWants) {
  SmallVocabulary vocabulary = small_byte_bpe();
  EXPECT_FALSE(made(vocabulary).adds_bos());
  EXPECT_TRUE(made(small_byte_bpe("llama-bpe")).adds_bos());
  EXPECT_TRUE(made(small_sentencepiece()).adds_bos());
  vocabulary.spec.add_bos = vocabulary.spec.add_eos = true;
  const Tokenizer tokenizer = made(vocabulary);
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("hello", true, false)), ElementsAre("<|start|>", "hello", "<|end|>"));
  EXPECT_THAT(texts(tokenizer, tokenizer.encode("hello", false, false)), ElementsAre("hello"));
}

TEST(Encode, RunsOnManyThreads) {
  const SmallVocabulary vocabulary = small_byte_bpe();
  const Tokenizer tokenizer = made(vocabulary);
  std::vector<std::vector<TokenId>> expected;
  for (uint64_t i = 0; i < 200; i++) expected.push_back(tokenizer.encode(random_string(3, i), false, true));
  std::vector<std::thread> threads;
  std::atomic<int> differences{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 200; i++)
        if (tokenizer.encode(random_string(3, i), false, true) != expected[i]) differences++;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences, 0);
}

TEST(Create, RefusesWithASentence) {
  const auto spoiled = [](SmallVocabulary vocabulary, auto&& spoil) {
    spoil(vocabulary);
    return refusal(vocabulary);
  };
  const SmallVocabulary bpe = small_byte_bpe(), pieces = small_sentencepiece();
  using Small = SmallVocabulary;
  EXPECT_THAT(refusal(small_byte_bpe("gpt-7")), HasSubstr("'gpt-7' isn't known; known are gpt-2"));
  EXPECT_THAT(refusal(small_byte_bpe("")), HasSubstr("known are"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.tokens.clear(); }), HasSubstr("vocabulary is empty"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.types.pop_back(); }), HasSubstr("266 tokens but 265 types"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.types[3] = static_cast<TokenType>(9); }), HasSubstr("Token 3 has type 9"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.bos = 266; }), HasSubstr("bos token id 266 is outside"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.eos = -1; }), HasSubstr("eos token id -1 is outside"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.tokens[4] = v.tokens[9]; }), HasSubstr("Tokens 4 and 9 are both"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.merges[0] = "he"; }), HasSubstr("Merge 0 ('he') isn't two tokens"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.merges[0] = "h z"; }), HasSubstr("Merge 0 ('h z') needs"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.merges[1] = v.merges[0]; }), HasSubstr("is there twice"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.merges.push_back("<|star t|>"); }), HasSubstr("Merge 7"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.add_space_prefix = true; }), HasSubstr("space before the text"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.spec.bos.reset(), v.spec.add_bos = true; }), HasSubstr("begin token"));
  EXPECT_THAT(spoiled(bpe, [](Small& v) { v.add(std::string(2000, 'x'), TokenType::control); }), HasSubstr("longer than"));
  const auto many_markers = [](Small& v) {
    for (int i = 0; i < 50000; i++) v.add("<" + std::to_string(i) + std::string(330, 'x'), TokenType::control);
  };
  EXPECT_THAT(spoiled(bpe, many_markers), HasSubstr("special tokens take more than 16 MiB"));
  EXPECT_THAT(spoiled(pieces, [](Small& v) { v.spec.scores.pop_back(); }), HasSubstr("scores"));
  EXPECT_THAT(spoiled(pieces, [](Small& v) { v.spec.scores[5] = NAN; }), HasSubstr("score of token 5"));
  for (const char* text : {"<0x-1>", "<0x1>", "<0x0G>", "0x0A", "<0X0A>", "<0x0A> "})
    EXPECT_THAT(spoiled(pieces, [&](Small& v) { v.tokens[7] = text; }), HasSubstr("Token 7")) << text;
  EXPECT_THAT(spoiled(pieces, [](Small& v) { v.tokens[3 + 0xAB] = "<0xab>", v.tokens[3 + 0xAC] = "<0xAB>"; }),
              HasSubstr("same byte"));
  EXPECT_THAT(spoiled(pieces, [](Small& v) { v.spec.types[7] = TokenType::unused, v.spec.unknown.reset(); }),
              HasSubstr("neither a token for each of the 256 bytes"));
}

TEST(Create, AcceptsEmptyTexts) {
  SmallVocabulary vocabulary = small_byte_bpe();
  vocabulary.add("", TokenType::normal);
  vocabulary.add("", TokenType::control);
  EXPECT_EQ(refusal(vocabulary), "");
}

// Eight times the text may take eight times as long, and some; a quadratic step would take 64 times. In processor time, so
// that a busy machine doesn't matter.
TEST(Workspace, LetsGoOfALongWordsMemory) {
  constexpr size_t kLong = 1 << 22;
  Workspace work;
  work.text.resize(kLong);
  work.fragment.resize(kLong);
  work.parts.resize(kLong);
  work.candidates.resize(kLong);
  work.trim();
  const size_t kept = work.text.capacity() + work.fragment.capacity() + work.parts.capacity() + work.candidates.capacity();
  EXPECT_LT(kept, 1000u);
}

TEST(Time, IsLinearInAnyText) {
  const auto seconds = [](const Tokenizer& tokenizer, const std::string& text) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    double best = 1e9;
    for (int i = 0; i < 2; i++) {
      const double start = now();
      tokenizer.encode(text, false, true);
      best = std::min(best, now() - start);
    }
    return best;
  };
  const auto repeated = [](std::string_view unit, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    return text;
  };
  constexpr size_t kBytes = 32 << 10;
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "smollm", "deepseek-llm", "deepseek-coder", "deepseek-v3",
                          "falcon", "gpt-4o", "tekken", "pieces"}) {
    const bool pieces = pre == std::string("pieces");
    const SmallVocabulary vocabulary = pieces ? small_sentencepiece() : small_byte_bpe(pre);
    const Tokenizer tokenizer = made(vocabulary);
    for (const char* unit :
         {"a",      "he",           " ",      "  \n", "\n",   "1",        "'",      "A",     "Aa", "<", "<|",
          "\u0301", "\u0316\u0301", "\u3042", "\t ",  "\xFF", "\xE2\x96", "\u2581", "hello", "!"}) {
      for (const char* end : {"", "x"}) {
        const double once = seconds(tokenizer, repeated(unit, kBytes) + end);
        const double eightfold = seconds(tokenizer, repeated(unit, 8 * kBytes) + end);
        EXPECT_LT(eightfold, 24 * once + 0.02) << pre << ": " << unit;
      }
    }
  }
}

// A word of 4 MB, whole.
TEST(Time, AllowsHugeWords) {
  for (const SmallVocabulary& vocabulary : {small_byte_bpe("llama-bpe"), small_sentencepiece()}) {
    const Tokenizer tokenizer = made(vocabulary);
    for (const char c : {'l', ' ', 'e'}) {
      const std::string text(4 << 20, c);
      EXPECT_EQ(detokenize(tokenizer, tokenizer.encode(text, false, false)), text);
    }
  }
}

}  // namespace
}  // namespace unisono::text
