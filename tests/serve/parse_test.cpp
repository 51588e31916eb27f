// Bodies of requests: what is taken, and what is refused by the name of its field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/constraints.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"

namespace unisono::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const ModelFacts kModel{.name = "tiny", .vocab_size = 300, .max_context = 2048};

Json json(std::string_view text) {
  auto parsed = parse_json(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *std::move(parsed) : Json();
}

// A body with one message or prompt, and the given fields; a field given again replaces the first.
Json with(std::string_view base, std::string_view fields) {
  Json body = json(base);
  const Json more = json("{" + std::string(fields) + "}");
  for (const auto& field : more.get_object()) body.get_object()[field.key()] = field.value();
  return body;
}
Json chat_body(std::string_view fields = "") {
  return with(R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}]})", fields);
}
Json completion_body(std::string_view fields = "") { return with(R"({"model":"tiny","prompt":"Hi"})", fields); }

ChatCall chat(std::string_view fields = "") {
  auto parsed = parse_chat(chat_body(fields), kModel);
  const auto* error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << fields << ": " << (error ? error->message : "");
  return error ? ChatCall{} : std::get<ChatCall>(std::move(parsed));
}
CompletionCall completion(std::string_view fields = "") {
  auto parsed = parse_completion(completion_body(fields), kModel);
  const auto* error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << fields << ": " << (error ? error->message : "");
  return error ? CompletionCall{} : std::get<CompletionCall>(std::move(parsed));
}
ApiError chat_error(const Json& body) {
  auto parsed = parse_chat(body, kModel);
  EXPECT_TRUE(std::holds_alternative<ApiError>(parsed)) << to_text(body);
  return std::holds_alternative<ApiError>(parsed) ? std::get<ApiError>(parsed) : ApiError{};
}
ApiError completion_error(const Json& body) {
  auto parsed = parse_completion(body, kModel);
  EXPECT_TRUE(std::holds_alternative<ApiError>(parsed)) << to_text(body);
  return std::holds_alternative<ApiError>(parsed) ? std::get<ApiError>(parsed) : ApiError{};
}

TEST(ParseChat, DefaultsAreOpenAIs) {
  const ChatCall call = chat();
  const engine::Request& request = call.generation.request;
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_EQ(request.sampling.top_p, 1.0f);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.0f);
  EXPECT_FALSE(call.generation.max_tokens.has_value());
  EXPECT_EQ(call.generation.n, 1);
  EXPECT_FALSE(call.generation.stream);
  EXPECT_FALSE(request.logprobs);
  EXPECT_FALSE(request.show_special);
  EXPECT_TRUE(call.input.add_generation_prompt);
  EXPECT_FALSE(call.input.continue_final_message);
  EXPECT_EQ(to_text(call.input.messages), R"([{"role":"user","content":"Hi"}])");
}

TEST(ParseChat, ReadsEveryField) {
  const ChatCall call = chat(R"("max_tokens":7,"temperature":0.5,"top_p":0.25,"top_k":40,"min_p":0.125,"seed":-3,"n":3,
    "stop":["a","b"],"stop_token_ids":[5,6],"logit_bias":{"7":-100,"8":2.5},"frequency_penalty":-2,"presence_penalty":2,
    "repetition_penalty":1.5,"ignore_eos":true,"min_tokens":2,"logprobs":true,"top_logprobs":20,"stream":true,
    "stream_options":{"include_usage":true,"continuous_usage_stats":true},"skip_special_tokens":false,
    "add_generation_prompt":false,"continue_final_message":true,"chat_template_kwargs":{"enable_thinking":false},
    "cache_salt":"a b")");
  const engine::Request& request = call.generation.request;
  EXPECT_EQ(call.generation.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_EQ(request.sampling.min_p, 0.125f);
  EXPECT_EQ(request.sampling.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(call.generation.n, 3);
  EXPECT_THAT(request.stop, ElementsAre("a", "b"));
  EXPECT_THAT(request.stop_tokens, ElementsAre(5, 6));
  EXPECT_THAT(request.sampling.logit_bias, ElementsAre(Pair(7, -100.0f), Pair(8, 2.5f)));
  EXPECT_EQ(request.sampling.frequency_penalty, -2.0f);
  EXPECT_EQ(request.sampling.presence_penalty, 2.0f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.min_tokens, 2);
  EXPECT_TRUE(request.logprobs);
  EXPECT_EQ(request.top_logprobs, 20);
  EXPECT_TRUE(call.generation.stream);
  EXPECT_TRUE(call.generation.include_usage);
  EXPECT_TRUE(call.generation.continuous_usage);
  EXPECT_TRUE(request.show_special);
  EXPECT_EQ(request.cache_salt, "a b");
  EXPECT_FALSE(call.input.add_generation_prompt);
  EXPECT_TRUE(call.input.continue_final_message);
  EXPECT_EQ(to_text(call.input.variables), R"({"enable_thinking":false})");
}

TEST(ParseChat, ReadsWhatIsToldAndWhenItEnds) {
  const auto before = std::chrono::steady_clock::now();
  const GenerationCall call = chat(R"("timeout":2.5,"priority":-7,"truncation":"auto","prompt_logprobs":0,"return_token_ids":true,
    "return_timings":true)").generation;
  ASSERT_TRUE(call.request.deadline.has_value());
  EXPECT_GE(*call.request.deadline, before + std::chrono::milliseconds(2500));
  EXPECT_LE(*call.request.deadline, std::chrono::steady_clock::now() + std::chrono::milliseconds(2500));
  EXPECT_EQ(call.request.priority, -7);
  EXPECT_TRUE(call.truncation.automatic);
  EXPECT_EQ(call.prompt_logprobs, 0);
  EXPECT_TRUE(call.token_ids);
  EXPECT_TRUE(call.timings);
  EXPECT_FALSE(chat().generation.request.deadline.has_value());
  EXPECT_FALSE(chat().generation.prompt_logprobs.has_value());
  EXPECT_EQ(chat(R"("truncate_prompt_tokens":9)").generation.truncation.keep_tokens, 9);
  EXPECT_EQ(chat(R"("truncate_prompt_tokens":-1)").generation.truncation.keep_tokens, 0);
  EXPECT_FALSE(chat(R"("truncation":"disabled")").generation.truncation.automatic);
}

TEST(ParseChat, NullIsAbsentWhereOpenAISaysSo) {
  const ChatCall call = chat(R"("temperature":null,"top_p":null,"n":null,"stop":null,"max_tokens":null,"logit_bias":null,
    "seed":null,"stream":null,"stream_options":null,"logprobs":null,"top_logprobs":null,"tools":null,"response_format":null,
    "tool_choice":null,"user":null,"max_completion_tokens":null,"frequency_penalty":null,"top_k":null,"audio":null)");
  EXPECT_EQ(call.generation.request.sampling.temperature, 1.0f);
  EXPECT_EQ(call.generation.n, 1);
  EXPECT_FALSE(call.generation.max_tokens.has_value());
}

TEST(ParseChat, TakesWhatHasNoEffect) {
  chat(
      R"("user":"me","store":true,"metadata":{"a":"b"},"service_tier":"auto","parallel_tool_calls":false,"safety_identifier":"x",
    "prompt_cache_key":"k","tool_choice":"none","response_format":{"type":"text"},"modalities":["text"],"verbosity":"medium")");
}

TEST(ParseChat, SeedsDifferWhenAbsent) {
  EXPECT_NE(chat().generation.request.sampling.seed, chat().generation.request.sampling.seed);
  EXPECT_EQ(chat(R"("seed":5)").generation.request.sampling.seed, 5u);
}

TEST(ParseChat, BothNamesOfTheLimit) {
  EXPECT_EQ(chat(R"("max_completion_tokens":9)").generation.max_tokens, 9);
  EXPECT_EQ(chat(R"("max_completion_tokens":9,"max_tokens":9)").generation.max_tokens, 9);
  EXPECT_EQ(chat_error(chat_body(R"("max_completion_tokens":9,"max_tokens":8)")).param, "max_tokens");
}

TEST(ParseChat, MinTokensAreComparedWithTheLimitByTheNameItWasGiven) {
  const ApiError error = chat_error(chat_body(R"("max_completion_tokens":2,"min_tokens":3)"));
  EXPECT_EQ(error.message, "'min_tokens' must be at most 'max_completion_tokens', which is 2, not 3.");
  EXPECT_EQ(chat(R"("min_tokens":3000)").generation.request.min_tokens, 3000);
  EXPECT_EQ(completion_error(json(R"({"prompt":"a","min_tokens":17})")).message,
            "'min_tokens' must be at most 'max_tokens', which is 16, not 17.");
}

TEST(ParseChat, NumbersThatAreWholeAreIntegers) {
  EXPECT_EQ(chat(R"("max_tokens":5.0)").generation.max_tokens, 5);
  EXPECT_EQ(chat(R"("top_k":-1)").generation.request.sampling.top_k, 0);
  EXPECT_EQ(chat(R"("top_p":0)").generation.request.sampling.top_k, 1);
}

TEST(ParseConstraint, AGrammarsNotationIsThatOfItsFirstRule) {
  using Kind = grammar::Shape::Kind;
  for (const char* text : {"root ::= \"a\"", "# start: \"a\"\n\n  root\t::= \"start: \" x\nx ::= \"b\"", "root::=\"a\""})
    EXPECT_EQ(grammar_shape(text).kind, Kind::gbnf) << text;
  for (const char* text : {"start: NAME \"::=\" NAME\nNAME: /a/", "# root ::= x\nstart: \"a\"", "?start: /::=/", "", "#", "start"})
    EXPECT_EQ(grammar_shape(text).kind, Kind::lark) << text;
}

TEST(ParseChat, KeepsTextPartsAndToolCallsAsTheyAre) {
  const ChatCall call = chat(R"("messages":[
    {"role":"system","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
    {"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
    {"role":"tool","tool_call_id":"c","content":"3"},
    {"role":"user","name":"Ann","content":""}])");
  EXPECT_EQ(
      to_text(call.input.messages),
      R"([{"role":"system","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},)"
      R"({"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},)"
      R"({"role":"tool","content":"3","tool_call_id":"c"},{"role":"user","content":"","name":"Ann"}])");
}

struct Bad {
  const char* fields;
  const char* param;
  const char* code;
};

// What both endpoints refuse.
constexpr Bad kBadGeneration[] = {
    {R"("model":"other")", "model", "model_not_found"},
    {R"("model":5)", "model", "invalid_type"},
    {R"("temperature":"hot")", "temperature", "invalid_type"},
    {R"("temperature":true)", "temperature", "invalid_type"},
    {R"("temperature":-0.1)", "temperature", "invalid_value"},
    {R"("temperature":2.1)", "temperature", "invalid_value"},
    {R"("temperature":1e308)", "temperature", "invalid_value"},
    {R"("top_p":1.5)", "top_p", "invalid_value"},
    {R"("top_p":[])", "top_p", "invalid_type"},
    {R"("top_k":-2)", "top_k", "invalid_value"},
    {R"("top_k":1.5)", "top_k", "invalid_value"},
    {R"("top_k":99999999999)", "top_k", "invalid_value"},
    {R"("min_p":2)", "min_p", "invalid_value"},
    {R"("frequency_penalty":3)", "frequency_penalty", "invalid_value"},
    {R"("presence_penalty":-3)", "presence_penalty", "invalid_value"},
    {R"("repetition_penalty":0)", "repetition_penalty", "invalid_value"},
    {R"("repetition_penalty":1e-60)", "repetition_penalty", "invalid_value"},
    {R"("seed":1.5)", "seed", "invalid_value"},
    {R"("seed":18446744073709551615)", "seed", "invalid_value"},
    {R"("seed":"1")", "seed", "invalid_type"},
    {R"("n":0)", "n", "invalid_value"},
    {R"("n":129)", "n", "invalid_value"},
    {R"("max_tokens":-1)", "max_tokens", "invalid_value"},
    {R"("max_tokens":2.5)", "max_tokens", "invalid_value"},
    {R"("max_tokens":3000000000)", "max_tokens", "invalid_value"},
    {R"("max_tokens":{})", "max_tokens", "invalid_type"},
    {R"("stop":5)", "stop", "invalid_type"},
    {R"("stop":"")", "stop", "invalid_value"},
    {R"("stop":["a",null])", "stop", "invalid_type"},
    {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "stop", "invalid_value"},
    {R"("stop_token_ids":5)", "stop_token_ids", "invalid_type"},
    {R"("stop_token_ids":[300])", "stop_token_ids", "invalid_value"},
    {R"("stop_token_ids":[-1])", "stop_token_ids", "invalid_value"},
    {R"("logit_bias":[])", "logit_bias", "invalid_type"},
    {R"("logit_bias":{"a":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"1 ":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"300":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"7":1,"07":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"-0":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"99999999999999":1})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"1":101})", "logit_bias", "invalid_value"},
    {R"("logit_bias":{"1":null})", "logit_bias", "invalid_value"},
    {R"("ignore_eos":1)", "ignore_eos", "invalid_type"},
    {R"("min_tokens":-1)", "min_tokens", "invalid_value"},
    {R"("max_tokens":2,"min_tokens":3)", "min_tokens", "invalid_value"},
    {R"("stream":"yes")", "stream", "invalid_type"},
    {R"("stream_options":{"include_usage":true})", "stream_options", "invalid_value"},
    {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage", "invalid_type"},
    {R"("stream":true,"stream_options":{"usage":true})", "stream_options.usage", "unknown_parameter"},
    {R"("skip_special_tokens":"no")", "skip_special_tokens", "invalid_type"},
    {R"("cache_salt":"")", "cache_salt", "invalid_value"},
    {R"("cache_salt":5)", "cache_salt", "invalid_type"},
    {R"("timeout":0)", "timeout", "invalid_value"},
    {R"("timeout":-1)", "timeout", "invalid_value"},
    {R"("timeout":1e300)", "timeout", "invalid_value"},
    {R"("timeout":"5s")", "timeout", "invalid_type"},
    {R"("priority":1.5)", "priority", "invalid_value"},
    {R"("priority":4294967296)", "priority", "invalid_value"},
    {R"("priority":"high")", "priority", "invalid_type"},
    {R"("truncation":"some")", "truncation", "invalid_value"},
    {R"("truncation":true)", "truncation", "invalid_type"},
    {R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens", "invalid_value"},
    {R"("truncate_prompt_tokens":-2)", "truncate_prompt_tokens", "invalid_value"},
    {R"("truncate_prompt_tokens":5,"truncation":"auto")", "truncate_prompt_tokens", "invalid_value"},
    {R"("prompt_logprobs":21)", "prompt_logprobs", "invalid_value"},
    {R"("prompt_logprobs":-1)", "prompt_logprobs", "invalid_value"},
    {R"("prompt_logprobs":1,"stream":true)", "prompt_logprobs", "unsupported_value"},
    {R"("return_token_ids":1)", "return_token_ids", "invalid_type"},
    {R"("return_timings":"yes")", "return_timings", "invalid_type"},
    {R"("Temperature":1)", "Temperature", "unknown_parameter"},
    {R"("mirostat":1)", "mirostat", "unknown_parameter"},
    {R"("":1)", "", "unknown_parameter"},
};

constexpr Bad kBadChat[] = {
    {R"("max_tokens":0)", "max_tokens", "invalid_value"},
    {R"("max_completion_tokens":0)", "max_completion_tokens", "invalid_value"},
    {R"("logprobs":5)", "logprobs", "invalid_type"},
    {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "invalid_value"},
    {R"("top_logprobs":5)", "top_logprobs", "invalid_value"},
    {R"("tools":{})", "tools", "invalid_type"},
    {R"("tools":[{"type":"function"}])", "tools[0].function", "missing_required_parameter"},
    {R"("tool_choice":"required")", "tool_choice", "invalid_value"},
    {R"("reasoning_format":"raw")", "reasoning_format", "invalid_value"},
    {R"("schema_options":{"whitespace":"wide"})", "schema_options.whitespace", "invalid_value"},
    {R"("functions":[])", "functions", "unsupported_parameter"},
    {R"("function_call":{"name":"f"})", "function_call", "unsupported_value"},
    {R"("response_format":{"type":"xml"})", "response_format.type", "unsupported_value"},
    {R"("response_format":{})", "response_format.type", "missing_required_parameter"},
    {R"("response_format":{"type":"json_schema"})", "response_format.json_schema", "missing_required_parameter"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})", "response_format.json_schema.schema", "missing_required_parameter"},
    {R"("response_format":{"type":"json_object","schema":{}})", "response_format.schema", "unknown_parameter"},
    {R"("structured_outputs":{})", "structured_outputs", "invalid_value"},
    {R"("structured_outputs":{"regex":"a","json_object":true})", "structured_outputs", "invalid_value"},
    {R"("structured_outputs":{"choice":[]})", "structured_outputs.choice", "invalid_value"},
    {R"("structured_outputs":{"json":"{"})", "structured_outputs.json", "invalid_value"},
    {R"("structured_outputs":{"structural_tag":"x"})", "structured_outputs.structural_tag", "invalid_value"},
    {R"("grammar":"root ::= \"a\"","json_schema":{})", "json_schema", "invalid_value"},
    {R"("audio":{"voice":"x"})", "audio", "unsupported_parameter"},
    {R"("modalities":["text","audio"])", "modalities", "unsupported_value"},
    {R"("prediction":{"type":"content"})", "prediction", "unsupported_parameter"},
    {R"("reasoning_effort":"low")", "reasoning_effort", "unsupported_parameter"},
    {R"("web_search_options":{})", "web_search_options", "unsupported_parameter"},
    {R"("prompt":"x")", "prompt", "unknown_parameter"},
    {R"("chat_template_kwargs":"x")", "chat_template_kwargs", "invalid_type"},
    {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs", "invalid_value"},
    {R"("continue_final_message":true,"add_generation_prompt":true)", "continue_final_message", "invalid_value"},
    {R"("messages":null)", "messages", "invalid_type"},
    {R"("messages":"Hi")", "messages", "invalid_type"},
    {R"("messages":[])", "messages", "invalid_value"},
    {R"("messages":["Hi"])", "messages[0]", "invalid_type"},
    {R"("messages":[{"content":"x"}])", "messages[0].role", "missing_required_parameter"},
    {R"("messages":[{"role":"user","content":"x"},{"role":"robot","content":"x"}])", "messages[1].role", "invalid_value"},
    {R"("messages":[{"role":5,"content":"x"}])", "messages[0].role", "invalid_type"},
    {R"("messages":[{"role":"user"}])", "messages[0].content", "missing_required_parameter"},
    {R"("messages":[{"role":"user","content":null}])", "messages[0].content", "invalid_type"},
    {R"("messages":[{"role":"user","content":5}])", "messages[0].content", "invalid_type"},
    {R"("messages":[{"role":"user","content":["x"]}])", "messages[0].content[0]", "invalid_type"},
    {R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text",
     "missing_required_parameter"},
    {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
     "messages[0].content[0].type", "unsupported_value"},
    {R"("messages":[{"role":"user","content":"x","mood":"good"}])", "messages[0].mood", "unknown_parameter"},
    {R"("messages":[{"role":"user","content":"x","tool_calls":[]}])", "messages[0].tool_calls", "unknown_parameter"},
    {R"("messages":[{"role":"assistant","tool_calls":["c"]}])", "messages[0].tool_calls[0]", "invalid_type"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}])", "messages[0].tool_calls[0].function",
     "missing_required_parameter"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"f"}}]}])",
     "messages[0].tool_calls[0].id", "invalid_type"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"type":"custom","function":{"name":"f"}}]}])",
     "messages[0].tool_calls[0].type", "unsupported_value"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":7}}]}])",
     "messages[0].tool_calls[0].function.name", "invalid_type"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":5}}]}])",
     "messages[0].tool_calls[0].function.arguments", "invalid_type"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","argumens":"{}"}}]}])",
     "messages[0].tool_calls[0].function.argumens", "unknown_parameter"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function"})",
     "tool_choice.function", "missing_required_parameter"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","name":"f"})",
     "tool_choice.function", "missing_required_parameter"},
};

constexpr Bad kBadCompletion[] = {
    {R"("prompt":null)", "prompt", "invalid_type"},
    {R"("prompt":5)", "prompt", "invalid_type"},
    {R"("prompt":[])", "prompt", "invalid_type"},
    {R"("prompt":["a",5])", "prompt", "invalid_type"},
    {R"("prompt":[5,"a"])", "prompt", "invalid_type"},
    {R"("prompt":[5,300])", "prompt", "invalid_value"},
    {R"("prompt":[5,-1])", "prompt", "invalid_value"},
    {R"("prompt":[5,1.5])", "prompt", "invalid_value"},
    {R"("prompt":[[5],[6,"a"]])", "prompt", "invalid_type"},
    {R"("prompt":[[5],"a"])", "prompt", "invalid_type"},
    {R"("logprobs":21)", "logprobs", "invalid_value"},
    {R"("logprobs":true)", "logprobs", "invalid_type"},
    {R"("echo":"yes")", "echo", "invalid_type"},
    {R"("best_of":0)", "best_of", "invalid_value"},
    {R"("best_of":1,"n":2)", "best_of", "invalid_value"},
    {R"("best_of":129)", "best_of", "invalid_value"},
    {R"("best_of":2,"stream":true)", "best_of", "invalid_value"},
    {R"("prompt":["a","b"],"best_of":100)", "best_of", "invalid_value"},
    {R"("suffix":"end")", "suffix", "unsupported_parameter"},
    {R"("messages":[])", "messages", "unknown_parameter"},
    {R"("prompt":["a","b"],"n":100)", "n", "invalid_value"},
};

void expect_refused(const ApiError& error, const Bad& bad) {
  EXPECT_EQ(error.status, std::string_view(bad.code) == "model_not_found" ? 404 : 400) << bad.fields;
  EXPECT_EQ(error.param, bad.param) << bad.fields << ": " << error.message;
  EXPECT_EQ(error.code, bad.code) << bad.fields << ": " << error.message;
  EXPECT_THAT(error.message, HasSubstr(std::string_view(bad.code) == "model_not_found" ? "tiny" : bad.param)) << bad.fields;
}

TEST(ParseChat, RefusesByName) {
  for (const Bad& bad : kBadGeneration) expect_refused(chat_error(chat_body(bad.fields)), bad);
  for (const Bad& bad : kBadChat) {
    const ApiError error = chat_error(chat_body(bad.fields));
    EXPECT_EQ(error.status, 400) << bad.fields;
    EXPECT_EQ(error.param, bad.param) << bad.fields << ": " << error.message;
    EXPECT_EQ(error.code, bad.code) << bad.fields << ": " << error.message;
  }
  EXPECT_EQ(chat_error(json("{}")).param, "messages");
  EXPECT_EQ(chat_error(json("[]")).status, 400);
}

TEST(ParseCompletion, RefusesByName) {
  for (const Bad& bad : kBadGeneration) expect_refused(completion_error(completion_body(bad.fields)), bad);
  for (const Bad& bad : kBadCompletion) {
    const ApiError error = completion_error(completion_body(bad.fields));
    EXPECT_EQ(error.param, bad.param) << bad.fields << ": " << error.message;
    EXPECT_EQ(error.code, bad.code) << bad.fields << ": " << error.message;
  }
  EXPECT_EQ(completion_error(json("{}")).param, "prompt");
}

TEST(ParseCompletion, ReadsPrompts) {
  using Ids = std::vector<engine::TokenId>;
  EXPECT_EQ(completion().generation.max_tokens, 16);
  EXPECT_EQ(completion().prompts, std::vector<Prompt>{"Hi"});
  EXPECT_EQ(completion(R"("prompt":"")").prompts, std::vector<Prompt>{""});
  EXPECT_EQ(completion(R"("prompt":[1,2])").prompts, (std::vector<Prompt>{Ids{1, 2}}));
  EXPECT_EQ(completion(R"("prompt":["a","b"])").prompts, (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(completion(R"("prompt":[[1],[2,3]])").prompts, (std::vector<Prompt>{Ids{1}, Ids{2, 3}}));
}

TEST(ParseCompletion, ReadsItsOwnFields) {
  const CompletionCall call = completion(R"("max_tokens":0,"echo":true,"logprobs":3,"n":2,"best_of":3)");
  EXPECT_EQ(call.generation.max_tokens, 0);
  EXPECT_TRUE(call.echo);
  EXPECT_TRUE(call.generation.request.logprobs);
  EXPECT_TRUE(call.generation.request.prompt_logprobs);
  EXPECT_EQ(call.generation.request.top_logprobs, 3);
  EXPECT_EQ(call.generation.n, 2);
  EXPECT_EQ(call.best_of, 3);
  EXPECT_EQ(completion(R"("n":3)").best_of, 3);
  EXPECT_FALSE(completion(R"("logprobs":0)").generation.request.prompt_logprobs);
  EXPECT_TRUE(completion(R"("logprobs":0)").generation.request.logprobs);
}

TEST(ApiError, HasOpenAIsShape) {
  EXPECT_EQ(error_body({.message = "No.", .param = "stop", .code = "invalid_value"}),
            R"({"error":{"message":"No.","type":"invalid_request_error","param":"stop","code":"invalid_value"}})");
  EXPECT_EQ(error_body({.status = 500, .message = "Oh."}),
            R"({"error":{"message":"Oh.","type":"server_error","param":null,"code":null}})");
  const HttpResponse busy = error_response({.status = 429, .message = "Full."});
  EXPECT_EQ(busy.status, 429);
  EXPECT_THAT(busy.headers, ElementsAre(Pair("Retry-After", "1")));
}

TEST(Shown, ShortensBetweenCharacters) {
  EXPECT_EQ(shown(json("5")), "5");
  EXPECT_EQ(shown(json("[1]")), "an array");
  EXPECT_EQ(shown(json("13.50")), "13.5");
  EXPECT_EQ(shown(json("-1e-7")), "-1e-07");
  std::string long_text;
  for (int i = 0; i < 100; i++) long_text += "\u00e9";
  const std::string out = shown(Json(long_text));
  EXPECT_LE(out.size(), 63u);
  EXPECT_TRUE(parse_json("\"" + out.substr(1, out.size() - 4) + "\"").ok());  // still UTF-8
}

}  // namespace
}  // namespace unisono::serve
