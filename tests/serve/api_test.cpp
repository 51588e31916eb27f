// The API over HTTP, with an engine that answers as told: shapes, streams, errors, clients that leave.
#include "serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/fake_engine.h"
#include "serve/logprobs.h"
#include "serve/raw_client.h"
#include "serve/served.h"
#include "text/unicode.h"

namespace unisono::serve {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

class ApiTest : public testing::Test {
 protected:
  ApiTest() {
    auto parsed = text::ChatTemplate::parse(kTemplate, "<|begin|>", "<|end|>");
    if (parsed.ok()) chat_template_ = std::make_unique<text::ChatTemplate>(*std::move(parsed));
    context_.engine = engine_.door();
    context_.tokenizer = &byte_tokenizer();
    context_.chat_template = chat_template_.get();
    context_.model = {.name = "tiny", .vocab_size = 258, .max_context = 2048};
    context_.fingerprint = "fp_test";
    context_.version = "0";
    context_.created = 1;
    server_ = served(make_api(context_));
  }

  struct Answer {
    int status = 0;
    Json body{};
    std::string text{};
  };
  Answer ask(std::string_view request) {
    RawClient client(server_->port());
    client.send(request);
    const std::string all = client.response();
    Answer answer;
    if (all.size() > 12) answer.status = std::stoi(all.substr(9, 3));
    answer.text = all.substr(std::min(all.size(), all.find("\r\n\r\n") + 4));
    auto body = parse_json(answer.text);
    if (body.ok()) answer.body = *std::move(body);
    return answer;
  }
  Answer complete(std::string_view fields) {
    return ask(post("/v1/completions", R"({"prompt":"ab",)" + std::string(fields) + "}"));
  }
  Answer chat(std::string_view fields) {
    return ask(
        post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}],)" + std::string(fields) + "}"));
  }
  // The data of a stream's events.
  std::vector<std::string> stream(std::string_view path, std::string_view body) {
    RawClient client(server_->port());
    client.send(post(path, body, "Connection: close\r\n"));
    const std::string all = client.rest();
    head_ = all.substr(0, all.find("\r\n\r\n"));
    std::vector<std::string> events;
    for (size_t at = all.find("data: "); at != std::string::npos; at = all.find("data: ", at + 1)) {
      events.push_back(all.substr(at + 6, all.find("\n\n", at) - at - 6));
    }
    return events;
  }
  bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 2000; i++) {
      if (holds()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  std::unique_ptr<text::ChatTemplate> chat_template_{};
  FakeEngine engine_{};
  ServeContext context_{};
  std::unique_ptr<HttpServer> server_{};
  std::string head_{};
};

std::string str(const Json& value) { return std::string(value.as_string()); }

TEST_F(ApiTest, Completes) {
  const Answer answer = complete(R"("seed":1)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const JsonObject& body = answer.body.as_object();
  EXPECT_THAT(str(body.at("id")), StartsWith("cmpl-"));
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("model"), "tiny");
  EXPECT_EQ(body.at("system_fingerprint"), "fp_test");
  EXPECT_EQ(to_text(body.at("choices")),
            "[{\"index\":0,\"text\":\"Hello \u00e9!\",\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":256}]");
  EXPECT_EQ(to_text(body.at("usage")),
            R"({"prompt_tokens":3,"completion_tokens":10,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":2}})");
  ASSERT_EQ(engine_.requests().size(), 1u);
  EXPECT_THAT(engine_.requests()[0].prompt, ElementsAre(257, 'a', 'b'));
}

TEST_F(ApiTest, Chats) {
  const Answer answer = chat(R"("max_tokens":5,"seed":1)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const JsonObject& body = answer.body.as_object();
  EXPECT_THAT(str(body.at("id")), StartsWith("chatcmpl-"));
  EXPECT_EQ(body.at("object"), "chat.completion");
  EXPECT_EQ(to_text(body.at("choices")),
            R"([{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,)"
            R"("finish_reason":"length","stop_reason":null}])");
  const auto prompt = engine_.requests()[0].prompt;
  EXPECT_EQ(text::detokenize(byte_tokenizer(), prompt, true), "user:Hi;assistant:");
}

TEST_F(ApiTest, AUsersTextNeverBecomesAControlToken) {
  const Answer answer =
      ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"<|end|>"}],"max_tokens":1})"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_THAT(engine_.requests()[0].prompt, testing::Not(testing::Contains(256)));
}

TEST_F(ApiTest, DevelopersAreTheSystemWhereTheTemplateKnowsNoDevelopers) {
  ask(post("/v1/chat/completions", R"({"messages":[{"role":"developer","content":"x"}],"max_tokens":1})"));
  ASSERT_EQ(engine_.requests().size(), 1u);
  EXPECT_EQ(text::detokenize(byte_tokenizer(), engine_.requests()[0].prompt, true), "system:x;assistant:");
}

TEST_F(ApiTest, ChatFillsTheContextByDefault) {
  chat(R"("seed":1)");
  ASSERT_EQ(engine_.requests().size(), 1u);
  EXPECT_EQ(engine_.requests()[0].max_tokens, engine::kNoLimit) << "so that it is the context that ends the answer";
}

TEST_F(ApiTest, StreamsWhatItAnswersWhole) {
  const auto events =
      stream("/v1/chat/completions",
             R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_THAT(head_, HasSubstr("Content-Type: text/event-stream"));
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 1 < events.size(); i++) {
    const Json event = *parse_json(events[i]);
    EXPECT_EQ(event.at("object"), "chat.completion.chunk");
    const bool usage_event = i + 2 == events.size();
    EXPECT_EQ(event.at("usage").is_null(), !usage_event);
    if (usage_event) {
      EXPECT_TRUE(event.at("choices").as_array().empty());
      EXPECT_EQ(event.at("usage").at("completion_tokens"), 10);
      continue;
    }
    const Json& choice = event.at("choices").at(0);
    if (i == 0) {
      EXPECT_EQ(choice.at("delta").at("role"), "assistant");
    } else if (i + 3 == events.size()) {
      EXPECT_EQ(choice.at("finish_reason"), "stop");
      EXPECT_TRUE(choice.at("delta").as_object().empty());
    } else {
      EXPECT_TRUE(choice.at("finish_reason").is_null());
      EXPECT_FALSE(str(choice.at("delta").at("content")).empty());  // no empty tokens: half a character waits
    }
    if (const Json* content = choice.at("delta").as_object().if_contains("content")) text += str(*content);
  }
  EXPECT_EQ(text, "Hello \u00e9!");
}

TEST_F(ApiTest, StreamsCompletionsWithLogprobsAsItAnswersThemWhole) {
  const std::string fields = R"("prompt":["ab","c"],"n":2,"echo":true,"logprobs":2,"seed":1)";
  const Answer whole = ask(post("/v1/completions", "{" + fields + "}"));
  ASSERT_EQ(whole.status, 200) << whole.text;
  std::vector<std::string> texts(4);
  std::vector<JsonArray> tokens(4), logprobs(4), tops(4), offsets(4);
  const auto events = stream("/v1/completions", "{" + fields + R"(,"stream":true})");
  for (size_t i = 0; i + 1 < events.size(); i++) {
    const Json event = *parse_json(events[i]);
    const JsonObject& choice = event.at("choices").at(0).as_object();
    const auto index = static_cast<size_t>(choice.at("index").as_int64());
    texts[index] += str(choice.at("text"));
    const JsonObject& part = choice.at("logprobs").as_object();
    for (const auto& [from, to] : {std::pair{"tokens", &tokens},
                                   {"token_logprobs", &logprobs},
                                   {"top_logprobs", &tops},
                                   {"text_offset", &offsets}}) {
      for (const Json& one : part.at(from).as_array()) (*to)[index].push_back(one);
    }
  }
  for (size_t i = 0; i < 4; i++) {
    const JsonObject& choice = whole.body.at("choices").at(i).as_object();
    EXPECT_EQ(str(choice.at("text")), texts[i]);
    const JsonObject& all = choice.at("logprobs").as_object();
    EXPECT_EQ(all.at("tokens"), Json(tokens[i]));
    EXPECT_EQ(all.at("token_logprobs"), Json(logprobs[i]));
    EXPECT_EQ(all.at("top_logprobs"), Json(tops[i]));
    EXPECT_EQ(all.at("text_offset"), Json(offsets[i]));
  }
  EXPECT_EQ(texts[0], "abHello \u00e9!");
  EXPECT_EQ(texts[2], "cHello \u00e9!");
  // <|begin|> a b H e l l o _ (two halves of a character) ! <|end|>
  EXPECT_EQ(to_text(offsets[0]), "[0,0,1,2,3,4,5,6,7,8,8,9,10]");
  EXPECT_EQ(tokens[0][0], "<|begin|>");
  EXPECT_EQ(tokens[0][9], "bytes:\\xc3");
  EXPECT_TRUE(logprobs[0][0].is_null());
  EXPECT_EQ(logprobs[0][1], -0.5);
  EXPECT_EQ(to_text(tops[0][3]), R"({"H":-2.5E-1,"I":-5E-1})");
  EXPECT_EQ(whole.body.at("usage").at("prompt_tokens"), 3 + 2);  // each prompt once
  EXPECT_EQ(whole.body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 2 + 2);
}

TEST_F(ApiTest, ChatLogprobs) {
  const Answer answer = chat(R"("logprobs":true,"top_logprobs":1,"max_tokens":1)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(
      to_text(answer.body.at("choices").at(0).at("logprobs")),
      R"({"content":[{"token":"H","logprob":-2.5E-1,"bytes":[72],"top_logprobs":[{"token":"H","logprob":-2.5E-1,"bytes":[72]}]}],"refusal":null})");
}

TEST_F(ApiTest, ChoicesDifferInTheirIndexOnly) {
  const Answer answer = complete(R"("n":3,"seed":9)");
  ASSERT_EQ(answer.body.at("choices").as_array().size(), 3u);
  for (uint32_t i = 0; i < 3; i++) {
    EXPECT_EQ(answer.body.at("choices").at(i).at("index"), i);
    EXPECT_EQ(engine_.requests()[i].sampling.choice, i);
    EXPECT_EQ(engine_.requests()[i].sampling.seed, 9u);
  }
  EXPECT_EQ(answer.body.at("usage").at("completion_tokens"), 30);
  EXPECT_EQ(answer.body.at("usage").at("prompt_tokens"), 3);
  EXPECT_EQ(answer.body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 2);
}

TEST_F(ApiTest, NoTokensIsAnAnswerToo) {
  const Answer answer = complete(R"("max_tokens":0,"echo":true,"logprobs":0)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const Json& choice = answer.body.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "ab");
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("logprobs").at("tokens").as_array().size(), 3u);
  EXPECT_EQ(answer.body.at("usage").at("completion_tokens"), 0);
  engine_.end_after = 0;
  engine_.end_as = engine::FinishReason::deadline;
  const Answer late = complete(R"("max_tokens":0,"echo":true,"logprobs":0)");
  EXPECT_EQ(late.body.at("choices").at(0).at("stop_reason"), "deadline") << late.text;
}

TEST_F(ApiTest, TheUsageSoFarHasThePromptFromTheFirstEventOn) {
  const auto events =
      stream("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"n":2,"stream":true,)"
                                     R"("stream_options":{"continuous_usage_stats":true}})");
  const int n_prompt = static_cast<int>(engine_.requests()[0].prompt.size());
  ASSERT_GT(events.size(), 4u);
  for (size_t i = 0; i + 1 < events.size(); i++) {
    const auto event = parse_json(events[i]);
    ASSERT_TRUE(event.ok()) << events[i];
    EXPECT_EQ(event->at("usage").at("prompt_tokens"), n_prompt) << events[i];
  }
}

TEST_F(ApiTest, OffsetsAreThoseOfTheTextWhateverItShows) {
  const auto offsets = [](bool special, bool echo) {
    CompletionLogprobs logprobs(byte_tokenizer(), 0, special, false);
    // A prompt's control tokens are part of an echo; what it leaves incomplete stays U+FFFD.
    if (echo) logprobs.add_prompt(257, true, {{.id = 'a'}, {.id = 256}, {.id = 0xC3}});
    for (const engine::TokenId id : {0xC3, 0xA9, 256, int{'b'}, int{'c'}}) logprobs.add({.id = id});
    return to_text(logprobs.take().at("text_offset"));
  };
  EXPECT_EQ(offsets(false, false), "[0,0,1,1,2]");
  EXPECT_EQ(offsets(true, false), "[0,0,1,8,9]");
  EXPECT_EQ(offsets(false, true), "[0,0,1,8,9,9,10,10,11]");
  EXPECT_EQ(offsets(true, true), "[0,0,1,8,9,9,10,17,18]");
}

TEST_F(ApiTest, TellsTheLikeliestOfItsCandidates) {
  engine_.logprob_by_choice = 0.01f;
  const Answer answer = complete(R"("n":2,"best_of":4,"return_token_ids":true)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  ASSERT_EQ(engine_.requests().size(), 4u);
  const JsonArray& choices = answer.body.at("choices").as_array();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].at("index"), 0);
  EXPECT_EQ(choices[1].at("index"), 1);
  EXPECT_TRUE(choices[0].at("logprobs").is_null());
  EXPECT_EQ(answer.body.at("usage").at("completion_tokens"), 40);  // made, if not told
  EXPECT_EQ(answer.body.at("usage").at("prompt_tokens"), 3);
  const Answer told = complete(R"("n":2,"best_of":4,"logprobs":0)");
  EXPECT_NEAR(told.body.at("choices").at(0).at("logprobs").at("token_logprobs").at(0).to_number<double>(), -0.22, 1e-6);
  EXPECT_NEAR(told.body.at("choices").at(1).at("logprobs").at("token_logprobs").at(0).to_number<double>(), -0.23, 1e-6);
}

TEST_F(ApiTest, TellsTokenIds) {
  const std::string ids = "[72,101,108,108,111,32,195,169,33,256]";
  Answer answer = complete(R"("prompt":["ab","c"],"n":2,"return_token_ids":true)");
  EXPECT_EQ(answer.status, 400) << "the key stands twice";
  answer = ask(post("/v1/completions", R"({"prompt":["ab","c"],"n":2,"return_token_ids":true})"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(to_text(answer.body.at("choices").at(1).at("prompt_token_ids")), "[257,97,98]");
  EXPECT_EQ(to_text(answer.body.at("choices").at(2).at("prompt_token_ids")), "[257,99]");
  EXPECT_EQ(to_text(answer.body.at("choices").at(3).at("token_ids")), ids);
  answer = chat(R"("return_token_ids":true)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const auto prompt = text::detokenize(byte_tokenizer(), engine_.requests().back().prompt, true);
  EXPECT_EQ(answer.body.at("prompt_token_ids").as_array().size(), prompt.size());
  EXPECT_EQ(to_text(answer.body.at("choices").at(0).at("token_ids")), ids);
  EXPECT_TRUE(answer.body.at("choices").at(0).at("logprobs").is_null());
  // In a stream: the prompt's once, each of the answer's once, also that of half a character.
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", R"({"prompt":"ab","stream":true,"return_token_ids":true})"},
        {"/v1/chat/completions",
         R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"return_token_ids":true})"}}) {
    JsonArray streamed;
    int prompts = 0;
    for (const std::string& text : stream(path, body)) {
      if (text == "[DONE]") continue;
      const Json event = *parse_json(text);
      const JsonObject& choice = event.at("choices").at(0).as_object();
      prompts += static_cast<int>(choice.contains("prompt_token_ids") || event.as_object().contains("prompt_token_ids"));
      if (const Json* some = choice.if_contains("token_ids"))
        streamed.insert(streamed.end(), some->as_array().begin(), some->as_array().end());
    }
    EXPECT_EQ(prompts, 1) << path;
    EXPECT_EQ(to_text(streamed), ids) << path;
  }
}

TEST_F(ApiTest, TellsAPromptsLogprobsAsVllmDoes) {
  const std::string fields = R"("max_tokens":1,"prompt_logprobs":1)";
  const std::string b = R"({"98":{"logprob":-5E-1,"rank":1,"decoded_token":"b"}})";
  Answer answer = complete(fields + R"(,"logprobs":3)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(to_text(answer.body.at("choices").at(0).at("prompt_logprobs").at(2)), b);
  EXPECT_TRUE(answer.body.at("choices").at(0).at("prompt_logprobs").at(0).is_null());
  EXPECT_EQ(answer.body.at("choices").at(0).at("prompt_logprobs").as_array().size(), 3u);
  EXPECT_EQ(answer.body.at("choices").at(0).at("logprobs").at("top_logprobs").at(0).as_object().size(), 3u);
  answer = complete(R"("max_tokens":1,"prompt_logprobs":3,"logprobs":1)");
  EXPECT_EQ(answer.body.at("choices").at(0).at("prompt_logprobs").at(2).as_object().size(), 3u);
  EXPECT_EQ(answer.body.at("choices").at(0).at("logprobs").at("top_logprobs").at(0).as_object().size(), 1u);
  answer = chat(fields + R"(,"n":2)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const auto prompt = engine_.requests().back().prompt;
  EXPECT_EQ(answer.body.at("prompt_logprobs").as_array().size(), prompt.size());
  EXPECT_TRUE(answer.body.at("choices").at(0).at("logprobs").is_null());
}

TEST_F(ApiTest, TellsWhereTheTimeWent) {
  const Answer answer = complete(R"("return_timings":true)");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const JsonObject& timings = answer.body.at("choices").at(0).at("timings").as_object();
  EXPECT_EQ(timings.at("queue_ms"), 1.0);
  EXPECT_EQ(timings.at("prompt_ms"), 2.0);
  EXPECT_EQ(timings.at("predicted_ms"), 5.0);
  EXPECT_EQ(timings.at("cache_n"), 2);
  EXPECT_EQ(timings.at("prompt_n"), 1);
  EXPECT_EQ(timings.at("prompt_per_second"), 500.0);
  EXPECT_EQ(timings.at("predicted_n"), 10);
  EXPECT_EQ(timings.at("predicted_per_second"), 1800.0);
  const auto events = stream("/v1/chat/completions",
                             R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"return_timings":true})");
  EXPECT_EQ(parse_json(events[events.size() - 2])->at("choices").at(0).at("timings").at("predicted_n"), 10);
}

TEST_F(ApiTest, DeadlinesAndCancellationsEndAnswersThatHaveBegun) {
  engine_.end_after = 2;
  for (const auto& [reason, name] :
       {std::pair{engine::FinishReason::deadline, "deadline"}, {engine::FinishReason::cancelled, "cancelled"}}) {
    engine_.end_as = reason;
    const Answer answer = complete(R"("seed":1)");
    ASSERT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.body.at("choices").at(0).at("text"), "Hel");
    EXPECT_EQ(answer.body.at("choices").at(0).at("finish_reason"), "length");
    EXPECT_EQ(answer.body.at("choices").at(0).at("stop_reason"), name);
    const auto events = stream("/v1/completions", R"({"prompt":"a","stream":true})");
    EXPECT_EQ(parse_json(events[events.size() - 2])->at("choices").at(0).at("stop_reason"), name);
  }
}

TEST_F(ApiTest, CutsPromptsAsAsked) {
  const std::string letters = std::string(2500, 'a') + "xyz";
  const auto prompt_of = [&](std::string_view fields) {
    const size_t before = engine_.requests().size();
    const Answer answer =
        ask(post("/v1/completions", R"({"prompt":")" + letters + R"(","max_tokens":100,)" + std::string(fields) + "}"));
    EXPECT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(engine_.requests().size(), before + 1);
    return engine_.requests().back().prompt;
  };
  EXPECT_THAT(prompt_of(R"("truncate_prompt_tokens":3)"), ElementsAre(257, 'y', 'z'));  // the BOS stays
  EXPECT_EQ(prompt_of(R"("truncate_prompt_tokens":-1)").size(), 1948u);
  EXPECT_EQ(prompt_of(R"("truncation":"auto")").size(), 1948u);
  EXPECT_EQ(prompt_of(R"("truncation":"auto","min_tokens":1)").back(), 'z');
  const Answer echo = ask(
      post("/v1/completions", R"({"prompt":"abc","echo":true,"truncate_prompt_tokens":3,"max_tokens":0,"logprobs":0})"));
  EXPECT_EQ(echo.body.at("choices").at(0).at("text"), "bc");
  EXPECT_EQ(to_text(echo.body.at("choices").at(0).at("logprobs").at("tokens")), R"(["<|begin|>","b","c"])");
  const Answer ids =
      ask(post("/v1/completions", R"({"prompt":[97,98,99],"echo":true,"truncate_prompt_tokens":2,"max_tokens":0})"));
  EXPECT_EQ(ids.body.at("choices").at(0).at("text"), "bc");
}

TEST_F(ApiTest, ChatsDropTheirOldestTurns) {
  const auto message = [](const char* role, char letter, size_t n) {
    return std::string(R"({"role":")") + role + R"(","content":")" + std::string(n, letter) + R"("})";
  };
  const std::string talk = message("system", 's', 100) + "," + message("user", 'A', 900) + "," +
                           message("assistant", 'B', 300) + "," + message("user", 'C', 500) + "," +
                           message("assistant", 'D', 300) + "," + message("user", 'E', 100);
  const auto shown = [&](std::string_view fields) {
    const Answer answer = ask(post("/v1/chat/completions", R"({"messages":[)" + talk + "]," + std::string(fields) + "}"));
    if (answer.status != 200) return answer.text;
    std::string runs;
    for (const char c : text::detokenize(byte_tokenizer(), engine_.requests().back().prompt, true))
      if (c >= 'A' && c <= 'E' && (runs.empty() || runs.back() != c)) runs += c;
    return runs;
  };
  EXPECT_THAT(shown(R"("max_tokens":5)"), HasSubstr("context_length_exceeded"));
  EXPECT_EQ(shown(R"("max_tokens":5,"truncation":"auto")"), "CDE");
  EXPECT_EQ(shown(R"("max_tokens":1010,"truncation":"auto")"), "E");
  EXPECT_EQ(shown(R"("truncation":"auto")"), "CDE");
  const Answer hopeless =
      ask(post("/v1/chat/completions", R"({"messages":[)" + message("user", 'A', 5) + "," + message("assistant", 'B', 5) +
                                           "," + message("user", 'C', 3000) + R"(],"truncation":"auto"})"));
  EXPECT_EQ(hopeless.body.at("error").at("code"), "context_length_exceeded");
  EXPECT_THAT(str(hopeless.body.at("error").at("message")), testing::AllOf(HasSubstr("2048"), HasSubstr("3")));
}

TEST_F(ApiTest, ResponsesAreChatsInAnotherDress) {
  const Answer whole = ask(post("/v1/responses", R"({"input":"Hi","instructions":"Be brief.","max_output_tokens":5})"));
  ASSERT_EQ(whole.status, 200) << whole.text;
  EXPECT_EQ(text::detokenize(byte_tokenizer(), engine_.requests()[0].prompt, true), "system:Be brief.;user:Hi;assistant:");
  EXPECT_EQ(engine_.requests()[0].max_tokens, 5);
  EXPECT_EQ(whole.body.at("status"), "incomplete");
  EXPECT_EQ(whole.body.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(whole.body.at("output").at(0).at("content").at(0).at("text"), "Hello");
  EXPECT_EQ(whole.body.at("usage").at("output_tokens"), 5);
  EXPECT_EQ(whole.body.at("usage").at("input_tokens_details").at("cached_tokens"), 2);
  std::string text;
  std::vector<std::string> types;
  for (const std::string& data : stream("/v1/responses", R"({"input":"Hi","stream":true})")) {
    const Json event = *parse_json(data);
    EXPECT_EQ(event.at("sequence_number"), types.size());
    const std::string type = str(event.at("type"));
    if (type == "response.output_text.delta") text += str(event.at("delta"));
    types.push_back(type);
    if (type != "response.completed") continue;
    EXPECT_EQ(str(event.at("response").at("output").at(0).at("content").at(0).at("text")), text);
  }
  EXPECT_EQ(text, "Hello \u00e9!");
  types.erase(std::unique(types.begin(), types.end()), types.end());
  EXPECT_THAT(types, ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                                 "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                                 "response.content_part.done", "response.output_item.done", "response.completed"));
  engine_.fail_after = 3;
  const auto events = stream("/v1/responses", R"({"input":"Hi","stream":true})");
  const Json failed = *parse_json(events.back());
  EXPECT_EQ(failed.at("type"), "response.failed");
  EXPECT_EQ(failed.at("response").at("status"), "failed");
  EXPECT_THAT(str(failed.at("response").at("error").at("message")), HasSubstr("something broke"));
}

TEST_F(ApiTest, MessagesAreChatsInAnotherDress) {
  const std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"system":"Be brief.","max_tokens":)";
  const Answer whole = ask(post("/v1/messages", body + "50}"));
  ASSERT_EQ(whole.status, 200) << whole.text;
  EXPECT_EQ(text::detokenize(byte_tokenizer(), engine_.requests()[0].prompt, true), "system:Be brief.;user:Hi;assistant:");
  EXPECT_EQ(to_text(whole.body.at("content")), "[{\"type\":\"text\",\"text\":\"Hello \u00e9!\"}]");
  EXPECT_EQ(whole.body.at("stop_reason"), "end_turn");
  EXPECT_EQ(whole.body.at("usage").at("cache_read_input_tokens"), 2);
  EXPECT_EQ(whole.body.at("usage").at("input_tokens").as_int64() + 2,
            ask(post("/v1/messages/count_tokens", body + "50}")).body.at("input_tokens").as_int64());
  std::string text;
  std::vector<std::string> types;
  for (const std::string& data : stream("/v1/messages", body + R"(5,"stream":true})")) {
    const Json event = *parse_json(data);
    types.push_back(str(event.at("type")));
    if (types.back() == "content_block_delta") text += str(event.at("delta").at("text"));
    if (types.back() != "message_delta") continue;
    EXPECT_EQ(event.at("delta").at("stop_reason"), "max_tokens");
  }
  EXPECT_EQ(text, "Hello");
  types.erase(std::unique(types.begin(), types.end()), types.end());
  EXPECT_THAT(types, ElementsAre("message_start", "ping", "content_block_start", "content_block_delta",
                                 "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(ask(post("/v1/messages", R"({"messages":[]})")).body.at("type"), "error");
  EXPECT_EQ(ask(post("/v1/messages", "{")).body.at("error").at("type"), "invalid_request_error");
  EXPECT_EQ(ask(get("/v1/messages")).body.at("type"), "error");  // 405
  EXPECT_EQ(ask(get("/v1/messages/nothing")).body.at("error").at("type"), "not_found_error");
  engine_.full = true;
  const Answer full = ask(post("/v1/messages", body + "5}"));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.body.at("error").at("type"), "rate_limit_error");
  engine_.full = false;
  engine_.fail_after = 3;
  EXPECT_THAT(stream("/v1/messages", body + R"(5,"stream":true})").back(), HasSubstr("api_error"));
}

TEST_F(ApiTest, MessagesTellThoughts) {
  constexpr ReasoningSyntax kThink{"<think>", "</think>"};
  auto parsed = text::ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }}:{{ m.reasoning_content }}{{ m.content }};{% endfor %}assistant:"
      "{% if enable_thinking %}<think>{% else %}<think></think>{% endif %}",
      "<|begin|>", "<|end|>");
  ASSERT_TRUE(parsed.ok());
  const text::ChatTemplate thinks = *std::move(parsed);
  const std::string body =
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":50,"thinking":{"type":"enabled","budget_tokens":40})";
  Answer answer = ask(post("/v1/messages", body + "}"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(str(answer.body.at("error").at("message")),
              StartsWith("'thinking.type' can only be disabled here: the model 'tiny'"));
  context_.chat_template = &thinks;
  context_.chat.reasoning = &kThink;
  engine_.answer = "Hm, so.\n</think>\n\nYes.";
  answer = ask(post("/v1/messages", body + "}"));
  EXPECT_EQ(to_text(answer.body.at("content")),
            R"([{"type":"thinking","thinking":"Hm, so.","signature":""},{"type":"text","text":"Yes."}])");
  const engine::Request request = engine_.requests().back();
  EXPECT_THAT(text::detokenize(byte_tokenizer(), request.prompt, true), EndsWith("assistant:<think>"));
  ASSERT_TRUE(request.thoughts);
  EXPECT_EQ(request.thoughts->end, "</think>");
  EXPECT_EQ(request.thoughts->max_tokens, 40);
  EXPECT_TRUE(request.thoughts->open);

  std::vector<std::string> types;
  std::string thought, text;
  for (const std::string& data : stream("/v1/messages", body + R"(,"stream":true})")) {
    const Json event = *parse_json(data);
    std::string type = str(event.at("type"));
    if (type == "content_block_start") type = str(event.at("content_block").at("type"));
    if (type == "content_block_delta") {
      type = str(event.at("delta").at("type"));
      if (type == "thinking_delta") thought += str(event.at("delta").at("thinking"));
      if (type == "text_delta") text += str(event.at("delta").at("text"));
    }
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  EXPECT_THAT(types,
              ElementsAre("message_start", "ping", "thinking", "thinking_delta", "signature_delta", "content_block_stop",
                          "text", "text_delta", "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(thought, "Hm, so.");
  EXPECT_EQ(text, "Yes.");

  const std::string history =
      R"({"max_tokens":50,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":)" +
      to_text(answer.body.at("content")) + R"(},{"role":"user","content":"Why?"}],"thinking":)";
  EXPECT_EQ(ask(post("/v1/messages", history + R"({"type":"adaptive"}})")).status, 200);
  EXPECT_THAT(text::detokenize(byte_tokenizer(), engine_.requests().back().prompt, true),
              HasSubstr("assistant:Hm, so.Yes.;user:Why?;"));
  EXPECT_FALSE(engine_.requests().back().thoughts);
  answer = ask(post("/v1/messages", history + R"({"type":"adaptive","display":"omitted"}})"));
  EXPECT_EQ(to_text(answer.body.at("content")), R"([{"type":"text","text":"Yes."}])");
}

TEST_F(ApiTest, ErrorsBeforeAHandlerHaveItsPathsShape) {
  HttpOptions small;
  small.limits.body_bytes = 100;
  server_ = served(make_api(context_), std::move(small));
  const std::string body(200, ' ');
  Answer answer = ask(post("/v1/messages", body));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body.at("type"), "error");
  EXPECT_EQ(answer.body.at("error").at("type"), "request_too_large");
  answer = ask(post("/v1/chat/completions", body));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body.at("error").at("code"), "body_too_large");
  EXPECT_EQ(ask("POST /v1/messages HTTP/1.1\r\nContent-Length: 5\r\n\r\n{   }").body.at("type"), "error") << "no Host";
  EXPECT_EQ(ask("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n").body.at("type"), "error");
  context_.engine.submit = [](engine::Request) -> Result<engine::RequestId> { throw std::bad_alloc(); };
  answer = ask(post("/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]})"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.at("type"), "error") << answer.text;
}

TEST_F(ApiTest, RefusalsNameTheField) {
  Answer answer = complete(R"("temperature":"hot")");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body.at("error").at("param"), "temperature");
  EXPECT_EQ(answer.body.at("error").at("type"), "invalid_request_error");
  answer = chat(R"("model":"gpt-5")");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body.at("error").at("code"), "model_not_found");
  answer = complete(R"("prompt":")" + std::string(3000, 'a') + "\"");
  EXPECT_EQ(answer.status, 400) << "the key stands twice";
  answer = ask(post("/v1/completions", R"({"prompt":")" + std::string(3000, 'a') + "\"}"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body.at("error").at("code"), "context_length_exceeded");
  EXPECT_EQ(answer.body.at("error").at("param"), "prompt");
  EXPECT_EQ(engine_.requests().size(), 0u);
}

TEST_F(ApiTest, RefusalsAreShortWhateverTheClientWrote) {
  std::string name;
  while (name.size() < 100'000) name += "ä";
  const std::string field = "\"" + name + "\":1", message = R"("messages":[{"role":"user","content":"Hi"}],)";
  const std::string bodies[] = {"{" + message + field + "}", "{" + message + field + "," + field + "}"};
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    for (const std::string& body : bodies) {
      const Answer answer = ask(post(path, body));
      EXPECT_EQ(answer.status, 400);
      EXPECT_LT(answer.text.size(), 3000u);
      const std::string told(answer.body.at("error").at("message").as_string());
      EXPECT_THAT(told, EndsWith("."));
      EXPECT_EQ(text::valid_prefix(told), told.size());
    }
  }
}

TEST_F(ApiTest, BodiesThatAreNotJsonObjects) {
  for (const std::string& body : {std::string(), std::string("{"), std::string("{\"a\":1,}"), std::string("\xff\xfe"),
                                  std::string("{\"prompt\":\"\\ud800\"}"), std::string("{} x"), std::string(1000, '['),
                                  std::string("{\"prompt\":\"\xC3\"}"), std::string("{\"prompt\":1e999}")}) {
    const Answer answer = ask(post("/v1/completions", body));
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.body.at("error").at("code"), "invalid_json") << body;
  }
  EXPECT_EQ(ask(post("/v1/completions", "[]")).status, 400);
  EXPECT_EQ(ask(post("/v1/completions", "null")).status, 400);
  EXPECT_EQ(ask(post("/v1/completions", std::string("{\"prompt\":\"a\\u0000b\"}"))).status, 200);
}

TEST_F(ApiTest, BodiesAreAnnouncedAsWhatTheyAre) {
  const auto status = [this](const std::string& headers) {
    const std::string body = R"({"prompt":"a","max_tokens":1})";
    return ask("POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body)
        .status;
  };
  for (const char* type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x=y"})
    EXPECT_EQ(status("Content-Type: " + std::string(type) + "\r\n"), 200) << type;
  for (const char* type :
       {"text/plain", "application/json-seq", "application/jsonl", "application", ";", "x; application/json"})
    EXPECT_EQ(status("Content-Type: " + std::string(type) + "\r\n"), 415) << type;
  EXPECT_EQ(status(""), 415);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: identity\r\n"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: gzip\r\n"), 415);
}

TEST_F(ApiTest, AFullQueueIs429) {
  engine_.full = true;
  RawClient client(server_->port());
  client.send(post("/v1/completions", R"({"prompt":"a"})"));
  const std::string answer = client.response();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("rate_limit_error"));
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 429 "));
  // More than the queue ever holds needn't come back.
  EXPECT_EQ(complete(R"("n":4)").status, 429);
  const Answer never = complete(R"("n":5)");
  EXPECT_EQ(never.status, 400);
  EXPECT_EQ(never.body.at("error").at("param"), "n");
}

TEST_F(ApiTest, ErrorsOfTheEngineAre500OrAnEvent) {
  engine_.fail_after = 3;
  const Answer answer = complete(R"("n":2)");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.at("error").at("type"), "server_error");
  const auto events = stream("/v1/completions", R"({"prompt":"a","stream":true})");
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_THAT(events[events.size() - 2], HasSubstr("something broke"));
  engine_.fault_of = "min_tokens";
  const Answer refused = complete(R"("n":2)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body.at("error").at("param"), "min_tokens");
  EXPECT_EQ(refused.body.at("error").at("message"), "something broke");
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
}

TEST_F(ApiTest, AClientThatLeavesIsCancelled) {
  engine_.hold = true;
  for (const char* body : {R"({"prompt":"a","n":2})", R"({"prompt":"a","n":2,"stream":true})"}) {
    RawClient client(server_->port());
    client.send(post("/v1/completions", body));
    EXPECT_TRUE(eventually([&] { return engine_.running() == 2; }));
    client.leave();
    EXPECT_TRUE(eventually([&] { return engine_.running() == 0; })) << body;
  }
  EXPECT_EQ(engine_.cancelled(), 4);
  EXPECT_EQ(ask(get("/health")).status, 200);
}

TEST_F(ApiTest, StoppingTheServerCancelsWhatRuns) {
  engine_.hold = true;
  RawClient client(server_->port());
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  EXPECT_TRUE(eventually([&] { return engine_.running() == 1; }));
  server_.reset();
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
}

TEST_F(ApiTest, TokenizesAndBack) {
  Answer answer = ask(post("/tokenize", R"({"prompt":"ab","return_token_strs":true})"));
  EXPECT_EQ(answer.text, R"({"count":3,"max_model_len":2048,"tokens":[257,97,98],"token_strs":["<|begin|>","a","b"]})");
  answer = ask(post("/tokenize", R"({"prompt":"a<|end|>","add_special_tokens":false,"model":"tiny"})"));
  EXPECT_EQ(answer.text, R"({"count":2,"max_model_len":2048,"tokens":[97,256]})");
  answer = ask(post("/tokenize", R"({"messages":[{"role":"user","content":"<"}],"add_generation_prompt":false})"));
  EXPECT_EQ(answer.body.at("count"), 7) << answer.text;
  answer = ask(post("/detokenize", R"({"tokens":[97,256,195,169]})"));
  EXPECT_EQ(answer.text, "{\"prompt\":\"a<|end|>\u00e9\"}");
  EXPECT_EQ(ask(post("/detokenize", R"({"tokens":[258]})")).body.at("error").at("param"), "tokens");
  EXPECT_EQ(ask(post("/detokenize", "{}")).body.at("error").at("param"), "tokens");
  EXPECT_EQ(ask(post("/tokenize", "{}")).body.at("error").at("param"), "prompt");
  EXPECT_EQ(ask(post("/tokenize", R"({"prompt":"a","stop":"b"})")).body.at("error").at("code"), "unknown_parameter");
}

TEST_F(ApiTest, ShowsThePromptOfMessages) {
  Answer answer = ask(post("/apply-template", R"({"messages":[{"role":"user","content":"<|end|>"}]})"));
  EXPECT_EQ(answer.text, R"({"prompt":"user:<|end|>;assistant:"})");
  answer = ask(post("/apply-template", R"({"messages":[]})"));
  EXPECT_EQ(answer.body.at("error").at("param"), "messages");
}

TEST_F(ApiTest, SaysWhatItIs) {
  EXPECT_EQ(
      ask(get("/v1/models")).text,
      R"({"object":"list","data":[{"id":"tiny","object":"model","created":1,"owned_by":"unisono","max_model_len":2048}]})");
  EXPECT_EQ(ask(get("/v1/models/tiny")).body.at("id"), "tiny");
  EXPECT_EQ(ask(get("/v1/models/huge")).status, 404);
  EXPECT_EQ(ask(get("/version")).text, R"({"version":"0"})");
  const Answer health = ask(get("/health"));
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body.at("status"), "ok");
}

TEST_F(ApiTest, ManyStreamsAtOnce) {
  engine_.step = 200us;
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int i = 0; i < 16; i++) {
    clients.emplace_back([&] {
      RawClient client(server_->port());
      for (int round = 0; round < 5; round++) {
        client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
        const std::string all = client.until("\r\n0\r\n\r\n");
        right += all.find("[DONE]") != std::string::npos && all.find("\"text\":\"!\"") != std::string::npos;
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(right, 80);
}

TEST_F(ApiTest, ModelsWithoutATemplateComplete) {
  ServeContext plain = context_;
  plain.chat_template = nullptr;
  server_ = served(make_api(plain));
  EXPECT_EQ(chat(R"("seed":1)").body.at("error").at("code"), "no_chat_template");
  EXPECT_EQ(complete(R"("seed":1)").status, 200);
  server_.reset();
}

}  // namespace
}  // namespace unisono::serve
