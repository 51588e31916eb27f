#include "engine/admission.h"

#include <gtest/gtest.h>

namespace unisono::engine {
namespace {

constexpr int kVocab = 100, kContext = 32;

std::string subject(const Request& request) {
  const auto checked = check_request(request, kVocab, kContext);
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().message.back(), '.') << checked.error().message;
  return checked.error().subject;
}

TEST(Admission, AcceptsWhatFits) {
  EXPECT_EQ(subject({.prompt = {1}}), "");
  EXPECT_EQ(subject({.prompt = std::vector<TokenId>(kContext - 1, 99), .max_tokens = 1000}), "");
  EXPECT_EQ(subject({.prompt = {1}, .stop = {"é"}, .stop_tokens = {5}, .min_tokens = 16, .top_logprobs = 100}), "");
}

TEST(Admission, RefusesByField) {
  EXPECT_EQ(subject({}), "prompt");
  EXPECT_EQ(subject({.prompt = std::vector<TokenId>(kContext, 1)}), "prompt");
  EXPECT_EQ(subject({.prompt = {100}}), "prompt");
  EXPECT_EQ(subject({.prompt = {-1}}), "prompt");
  EXPECT_EQ(subject({.prompt = {1}, .sampling = {.top_p = 0}}), "top_p");
  EXPECT_EQ(subject({.prompt = {1}, .max_tokens = 0}), "max_tokens");
  EXPECT_EQ(subject({.prompt = {1}, .max_tokens = 5, .min_tokens = 6}), "min_tokens");
  EXPECT_EQ(subject({.prompt = {1}, .min_tokens = -1}), "min_tokens");
  EXPECT_EQ(subject({.prompt = {1}, .stop = {"a", ""}}), "stop");
  EXPECT_EQ(subject({.prompt = {1}, .stop = {"\xA9"}}), "stop");
  EXPECT_EQ(subject({.prompt = {1}, .stop_tokens = {100}}), "stop_tokens");
  EXPECT_EQ(subject({.prompt = {1}, .top_logprobs = -1}), "top_logprobs");
  EXPECT_EQ(subject({.prompt = {1}, .top_logprobs = 101}), "top_logprobs");
  EXPECT_EQ(subject({.prompt = {1}, .cache_salt = std::string(kMaxSaltBytes, 's')}), "");
  EXPECT_EQ(subject({.prompt = {1}, .cache_salt = std::string(kMaxSaltBytes + 1, 's')}), "cache_salt");
}

TEST(Admission, ATooLongPromptIsToldBothNumbers) {
  const auto checked = check_request({.prompt = std::vector<TokenId>(50, 1)}, kVocab, kContext);
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("50"), std::string::npos);
  EXPECT_NE(checked.error().message.find("32"), std::string::npos);
}

}  // namespace
}  // namespace unisono::engine
