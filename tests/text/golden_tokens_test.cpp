// Real vocabularies against what their models' own tokenizers give.
#include <gmock/gmock.h>

#include <sstream>

#include "base/json.h"
#include "support/real_files.h"
#include "text/random_strings.h"
#include "text/vocabulary_file.h"

namespace unisono::text {
namespace {

constexpr const char* kVocabularies[] = {"command-r", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "llama-bpe", "llama-spm",      "mpt",          "phi-3",  "qwen2",
                                         "qwen35",    "refact",         "starcoder"};

std::vector<std::string> cut(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + at.size();
  }
}

class VocabularyCases : public ::testing::TestWithParam<const char*> {};

// The expectations come with the vocabularies, from the models' original tokenizers.
TEST_P(VocabularyCases, GiveTheExpectedIds) {
  SKIP_WITHOUT_SHARED(path, std::string("data/vocab/ggml-vocab-") + GetParam() + ".gguf");
  const VocabularyFile file = open_vocabulary(path);
  const Tokenizer tokenizer = tokenizer_of(file);
  const std::vector<std::string> texts = cut(file_text(path + ".inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> lines = cut(file_text(path + ".out"), "\n");
  ASSERT_GE(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    // That file's ids of decomposed letters are of an engine that doesn't compose; the model's own tokenizer does.
    if (file.spec.pre == "qwen35" && nfc(texts[i]) != texts[i]) continue;
    std::istringstream numbers(lines[i]);
    const std::vector<TokenId> expected{std::istream_iterator<TokenId>(numbers), {}};
    EXPECT_EQ(tokenizer.encode(texts[i], false, false), expected) << "case " << i << ": " << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(, VocabularyCases, ::testing::ValuesIn(kVocabularies), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

const JsonObject& golden() {
  static const Json parsed = parse_json(file_text(UNISONO_GOLDEN_DIR "/text/tokenizers.json")).value();
  return parsed.as_object();
}

std::string text_of(const Json& value) { return std::string(value.as_string()); }

TEST(RandomStrings, AreThoseTheOracleSaw) {
  Digest digest;
  const auto seed = static_cast<uint64_t>(golden().at("seed").as_int64());
  for (uint64_t i = 0; i < 10'000; i++) {
    const std::string text = random_string(seed, i);
    std::vector<char32_t> codes;
    for (size_t at = 0; at < text.size();) codes.push_back(decode_at(text, at));
    digest.add(codes);
  }
  EXPECT_EQ(digest.hex(), text_of(golden().at("strings")));
}

void compare(const Tokenizer& tokenizer, const JsonObject& expected, bool parse_special) {
  for (const auto& [name, value] : expected.at("texts").as_object()) {
    const std::string path = testing::shared_file("data/text/" + std::string(name));
    if (path.empty()) continue;
    Digest digest;
    digest.add(tokenizer.encode(file_text(path), false, parse_special));
    EXPECT_EQ(digest.hex(), text_of(value)) << name;
  }
  const auto seed = static_cast<uint64_t>(golden().at("seed").as_int64());
  const auto group = static_cast<uint64_t>(golden().at("group").as_int64());
  uint64_t index = 0;
  for (const Json& value : expected.at("groups").as_array()) {
    Digest digest;
    for (uint64_t i = 0; i < group; i++) digest.add(tokenizer.encode(random_string(seed, index++), false, parse_special));
    EXPECT_EQ(digest.hex(), text_of(value)) << "strings from " << index - group;
  }
  EXPECT_EQ(index, 10'000u);
}

class Oracle : public ::testing::TestWithParam<std::string> {};

TEST_P(Oracle, GivesTheSameIds) {
  std::string path = testing::model_file(GetParam());
  if (path.empty()) path = testing::shared_file("data/vocab/" + GetParam());
  if (path.empty()) GTEST_SKIP() << "needs the vocabulary " << GetParam();
  const VocabularyFile file = open_vocabulary(path);
  const Tokenizer tokenizer = tokenizer_of(file);
  for (const auto& [way, expected] : golden().at("vocabularies").at(GetParam()).as_object()) {
    SCOPED_TRACE(std::string(way));
    compare(tokenizer, expected.as_object(), way == "special");
  }
}

std::vector<std::string> vocabularies_of_golden() {
  std::vector<std::string> names;
  for (const auto& [name, value] : golden().at("vocabularies").as_object()) names.emplace_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, Oracle, ::testing::ValuesIn(vocabularies_of_golden()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace unisono::text
