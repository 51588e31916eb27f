// Chats in other dresses: what OpenAI's responses and Anthropic's messages become, and what of them is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/anthropic_messages.h"
#include "serve/openai_responses.h"

namespace unisono::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ModelFacts kModel{.name = "tiny", .vocab_size = 300, .max_context = 2048};

JsonObject object(std::string_view text) {
  auto parsed = parse_json(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? parsed->as_object() : JsonObject();
}
JsonObject with(std::string_view base, std::string_view fields) {
  JsonObject body = object(base);
  for (const auto& field : object("{" + std::string(fields) + "}")) body[field.key()] = field.value();
  return body;
}
Parsed<ResponseCall> parsed_response(std::string_view fields) {
  return parse_response(with(R"({"model":"tiny","input":"Hi"})", fields), kModel);
}
ResponseCall response(std::string_view fields = "") {
  auto parsed = parsed_response(fields);
  const auto* error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << fields << ": " << (error ? error->message : "");
  return error ? ResponseCall{} : std::get<ResponseCall>(std::move(parsed));
}
Parsed<ChatCall> parsed_message(std::string_view fields) {
  return parse_messages(with(R"({"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})", fields),
                        kModel);
}
ChatCall message(std::string_view fields = "") {
  auto parsed = parsed_message(fields);
  const auto* error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << fields << ": " << (error ? error->message : "");
  return error ? ChatCall{} : std::get<ChatCall>(std::move(parsed));
}

TEST(ParseResponse, IsAChat) {
  const ResponseCall call =
      response(R"("instructions":"Be brief.","max_output_tokens":9,"temperature":0.5,"top_p":0.25,"stop":["x"],
    "seed":4,"truncation":"auto","stream":true,"timeout":5,"metadata":{"a":"b"},"store":false,"background":false,
    "include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":2,"user":"me","service_tier":"auto")");
  EXPECT_EQ(to_text(call.chat.input.messages),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])");
  const GenerationCall& generation = call.chat.generation;
  EXPECT_EQ(generation.max_tokens, 9);
  EXPECT_EQ(generation.request.sampling.temperature, 0.5f);
  EXPECT_EQ(generation.request.sampling.top_p, 0.25f);
  EXPECT_EQ(generation.request.sampling.seed, 4u);
  EXPECT_THAT(generation.request.stop, ElementsAre("x"));
  EXPECT_TRUE(generation.truncation.automatic);
  EXPECT_TRUE(generation.stream);
  EXPECT_TRUE(generation.request.deadline.has_value());
  EXPECT_TRUE(generation.request.logprobs);
  EXPECT_EQ(generation.request.top_logprobs, 2);
  EXPECT_EQ(call.told.at("temperature"), 0.5);
  EXPECT_EQ(to_text(call.told.at("metadata")), R"({"a":"b"})");
  EXPECT_EQ(response().chat.generation.max_tokens, std::nullopt);
  EXPECT_EQ(response().told.at("temperature"), 1.0);
}

TEST(ParseResponse, ItemsAreMessages) {
  const ResponseCall call = response(R"("input":[
    {"role":"developer","content":"D"},
    {"role":"user","content":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},
    {"type":"message","role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"A","annotations":[]}]},
    {"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed"},
    {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"3"},
    {"role":"user","content":""}])");
  EXPECT_EQ(to_text(call.chat.input.messages),
            R"([{"role":"developer","content":"D"},{"role":"user","content":"one\ntwo"},)"
            R"({"role":"assistant","content":"A","reasoning_content":"Hm.","tool_calls":[)"
            R"({"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},)"
            R"({"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},)"
            R"({"role":"tool","tool_call_id":"c1","content":"3"},{"role":"user","content":""}])");
}

TEST(ParseResponse, ToolsAreThoseOfChats) {
  const ResponseCall call =
      response(R"("tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],
    "tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false)");
  ASSERT_EQ(call.chat.tools.callable.size(), 1u);
  EXPECT_EQ(call.chat.tools.callable[0].name, "f");
  EXPECT_EQ(call.chat.tools.choice, ToolCall::Choice::required);
  EXPECT_FALSE(call.chat.tools.parallel);
  EXPECT_FALSE(call.chat.input.tools.is_null());
  EXPECT_TRUE(call.told.at("tools").at(0).at("strict").is_null());
  EXPECT_EQ(response(R"("tools":[],"tool_choice":"auto")").chat.tools.choice, ToolCall::Choice::none);
}

struct Bad {
  const char* fields;
  const char* param;
  const char* code;
};

TEST(ParseResponse, RefusesByName) {
  constexpr Bad kBad[] = {
      {R"("model":"other")", "model", "model_not_found"},
      {R"("input":null)", "input", "invalid_type"},
      {R"("input":[])", "input", "invalid_value"},
      {R"("input":["x"])", "input[0]", "invalid_type"},
      {R"("input":[{"role":"tool","content":"x"}])", "input[0].role", "invalid_value"},
      {R"("input":[{"role":"user"}])", "input[0].content", "missing_required_parameter"},
      {R"("input":[{"role":"user","content":[{"type":"input_file","file_id":"x"}]}])", "input[0].content[0].type",
       "unsupported_value"},
      {R"("input":[{"role":"user","content":"x","mood":"good"}])", "input[0].mood", "unknown_parameter"},
      {R"("input":[{"type":"web_search_call","id":"x"}])", "input[0].type", "unsupported_value"},
      {R"("input":[{"type":"function_call","call_id":"c","name":"f"}])", "input[0].arguments",
       "missing_required_parameter"},
      {R"("input":[{"type":"function_call_output","call_id":"c"}])", "input[0].output", "missing_required_parameter"},
      {R"("instructions":5)", "instructions", "invalid_type"},
      {R"("max_output_tokens":0)", "max_output_tokens", "invalid_value"},
      {R"("max_tokens":5)", "max_tokens", "unknown_parameter"},
      {R"("max_output_tokens":2,"min_tokens":3)", "min_tokens", "invalid_value"},
      {R"("store":true)", "store", "unsupported_value"},
      {R"("background":true)", "background", "unsupported_value"},
      {R"("previous_response_id":"x")", "previous_response_id", "unsupported_parameter"},
      {R"("conversation":"x")", "conversation", "unsupported_parameter"},
      {R"("prompt":{"id":"x"})", "prompt", "unsupported_parameter"},
      {R"("reasoning":{"effort":"low"})", "reasoning", "unsupported_parameter"},
      {R"("tools":[{"type":"file_search"}])", "tools[0].type", "unsupported_value"},
      {R"("tools":[{"type":"function"}])", "tools[0].name", "missing_required_parameter"},
      {R"("tool_choice":"required")", "tool_choice", "invalid_value"},
      {R"("text":{"format":{"type":"xml"}})", "text.format.type", "unsupported_value"},
      {R"("text":{"format":{"type":"json_schema","name":"x"}})", "text.format.schema", "missing_required_parameter"},
      {R"("text":{"verbosity":"low"})", "text.verbosity", "unsupported_value"},
      {R"("text":{"shape":1})", "text.shape", "unknown_parameter"},
      {R"("include":["x"])", "include", "invalid_value"},
      {R"("top_logprobs":2)", "top_logprobs", "invalid_value"},
      {R"("metadata":{"a":1})", "metadata", "invalid_type"},
      {R"("stream_options":{})", "stream_options", "invalid_value"},
      {R"("n":2)", "n", "unknown_parameter"},
      {R"("messages":[])", "messages", "unknown_parameter"},
  };
  for (const Bad& bad : kBad) {
    const auto parsed = parsed_response(bad.fields);
    const auto* error = std::get_if<ApiError>(&parsed);
    ASSERT_TRUE(error) << bad.fields;
    EXPECT_EQ(error->param, bad.param) << bad.fields << ": " << error->message;
    EXPECT_EQ(error->code, bad.code) << bad.fields << ": " << error->message;
    EXPECT_THAT(error->message, testing::Not(HasSubstr("response_format"))) << bad.fields;
  }
}

TEST(ParseMessages, IsAChat) {
  const ChatCall call = message(
      R"("system":[{"type":"text","text":"Be"},{"type":"text","text":"brief.","cache_control":{"type":"ephemeral"}}],
    "stop_sequences":["a","b"],"temperature":0.5,"top_k":3,"top_p":0.5,"stream":true,"metadata":{"user_id":"x"},"seed":1,
    "thinking":{"type":"disabled"})");
  EXPECT_EQ(to_text(call.input.messages), R"([{"role":"system","content":"Be\nbrief."},{"role":"user","content":"Hi"}])");
  EXPECT_EQ(call.generation.max_tokens, 5);
  EXPECT_EQ(call.generation.request.sampling.top_k, 3);
  EXPECT_THAT(call.generation.request.stop, ElementsAre("a", "b"));
  EXPECT_TRUE(call.generation.stream);
  EXPECT_TRUE(call.input.add_generation_prompt);
  EXPECT_FALSE(call.tell_reasoning);
}

TEST(ParseMessages, BlocksAreMessages) {
  const ChatCall call = message(R"("messages":[
    {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
    {"role":"user","content":"three"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"A"},
                                   {"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"3"}]},{"type":"text","text":"So?"}]}])");
  EXPECT_EQ(to_text(call.input.messages),
            R"([{"role":"user","content":"one\ntwo\nthree"},)"
            R"({"role":"assistant","content":"A","reasoning_content":"Hm.","tool_calls":[)"
            R"({"id":"t1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},)"
            R"({"role":"tool","tool_call_id":"t1","content":"3"},{"role":"user","content":"So?"}])");
  const ChatCall open = message(R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"He"}])");
  EXPECT_TRUE(open.input.continue_final_message);
  EXPECT_FALSE(open.input.add_generation_prompt);
}

TEST(ParseMessages, ThinkingIsAskedForWithItsBudget) {
  ChatCall call = message(R"("thinking":{"type":"enabled","budget_tokens":4})");
  ASSERT_TRUE(call.thinking);
  EXPECT_EQ(call.thinking->budget, 4);
  EXPECT_TRUE(call.tell_reasoning);
  EXPECT_EQ(to_text(call.input.variables), R"({"enable_thinking":true,"thinking":true,"thinking_budget":4})");
  call = message(R"("thinking":{"type":"adaptive","display":"omitted"})");
  ASSERT_TRUE(call.thinking);
  EXPECT_FALSE(call.thinking->budget);
  EXPECT_FALSE(call.tell_reasoning);
  call = message(R"("thinking":{"type":"disabled"})");
  EXPECT_FALSE(call.thinking);
  EXPECT_EQ(to_text(call.input.variables), R"({"enable_thinking":false,"thinking":false})");
  EXPECT_EQ(to_text(message().input.variables), "{}") << "unsaid, it is the template's business";
  const ChatCall twice = message(R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[
    {"type":"thinking","thinking":"One.","signature":""},{"type":"thinking","thinking":"Two.","signature":""},
    {"type":"text","text":"A"}]},{"role":"user","content":"So?"}])");
  EXPECT_EQ(twice.input.messages.at(1).at("reasoning_content"), "One.\nTwo.");
}

TEST(ParseMessages, ToolsAreThoseOfChats) {
  const std::string tools =
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}},"cache_control":null}])";
  ChatCall call = message(tools + R"(,"tool_choice":{"type":"any","disable_parallel_tool_use":true})");
  ASSERT_EQ(call.tools.callable.size(), 1u);
  EXPECT_EQ(call.tools.choice, ToolCall::Choice::required);
  EXPECT_FALSE(call.tools.parallel);
  call = message(tools + R"(,"tool_choice":{"type":"none"})");
  EXPECT_EQ(call.tools.choice, ToolCall::Choice::none);
  EXPECT_EQ(message(tools).tools.choice, ToolCall::Choice::free);
}

TEST(ParseMessages, RefusesByName) {
  constexpr Bad kBad[] = {
      {R"("max_tokens":null)", "max_tokens", "invalid_type"},
      {R"("max_tokens":0)", "max_tokens", "invalid_value"},
      {R"("messages":[])", "messages", "invalid_value"},
      {R"("messages":["x"])", "messages[0]", "invalid_type"},
      {R"("messages":[{"role":"system","content":"x"}])", "messages[0].role", "invalid_value"},
      {R"("messages":[{"role":"user"}])", "messages[0].content", "missing_required_parameter"},
      {R"("messages":[{"role":"user","content":["x"]}])", "messages[0].content[0]", "invalid_type"},
      {R"("messages":[{"role":"user","content":[]}])", "messages[0].content", "invalid_value"},
      {R"("messages":[{"role":"user","content":[{"type":"image","source":{}}]}])", "messages[0].content[0].type",
       "unsupported_value"},
      {R"("messages":[{"role":"user","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}])",
       "messages[0].content[0].type", "unsupported_value"},
      {R"("messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}])",
       "messages[0].content[0].tool_use_id", "missing_required_parameter"},
      {R"("messages":[{"role":"user","content":"x","name":"y"}])", "messages[0].name", "unknown_parameter"},
      {R"("system":5)", "system", "invalid_type"},
      {R"("stop_sequences":[5])", "stop_sequences", "invalid_type"},
      {R"("stop":["a"])", "stop", "unknown_parameter"},
      {R"("thinking":{"type":"enabled","budget_tokens":5})", "thinking.budget_tokens", "invalid_value"},
      {R"("thinking":{"type":"enabled","budget_tokens":0})", "thinking.budget_tokens", "invalid_value"},
      {R"("thinking":{"type":"enabled"})", "thinking.budget_tokens", "missing_required_parameter"},
      {R"("thinking":{"type":"adaptive","budget_tokens":2})", "thinking.budget_tokens", "unknown_parameter"},
      {R"("thinking":{"type":"between_tools"})", "thinking.type", "unsupported_value"},
      {R"("thinking":{"type":"adaptive","display":"loud"})", "thinking.display", "invalid_value"},
      {R"("thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"He"}])",
       "thinking.type", "unsupported_value"},
      {R"("tools":[{"type":"bash_20250124","name":"bash"}])", "tools[0].type", "unsupported_value"},
      {R"("tools":[{"description":"x","input_schema":{}}])", "tools[0].name", "missing_required_parameter"},
      {R"("tools":[{"name":"f","input_schema":5}])", "tools[0].input_schema", "invalid_type"},
      {R"("tool_choice":{"type":"maybe"})", "tool_choice.type", "invalid_value"},
      {R"("container":"x")", "container", "unsupported_parameter"},
      {R"("output_config":{"effort":"low"})", "output_config.effort", "unsupported_parameter"},
      {R"("output_config":{"format":{"type":"json_schema"}})", "output_config.format.schema", "missing_required_parameter"},
      {R"("n":2)", "n", "unknown_parameter"},
  };
  for (const Bad& bad : kBad) {
    const auto parsed = parsed_message(bad.fields);
    const auto* error = std::get_if<ApiError>(&parsed);
    ASSERT_TRUE(error) << bad.fields;
    EXPECT_EQ(error->param, bad.param) << bad.fields << ": " << error->message;
    EXPECT_EQ(error->code, bad.code) << bad.fields << ": " << error->message;
  }
}

TEST(ParseCountTokens, NeedsNoLimit) {
  EXPECT_TRUE(std::holds_alternative<ChatCall>(
      parse_count_tokens(object(R"({"messages":[{"role":"user","content":"Hi"}]})"), kModel)));
  EXPECT_TRUE(
      std::holds_alternative<ApiError>(parse_messages(object(R"({"messages":[{"role":"user","content":"Hi"}]})"), kModel)));
}

TEST(AnthropicError, HasItsShape) {
  EXPECT_EQ(anthropic_error_body({.message = "No.", .param = "stop", .code = "invalid_value"}),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"No."}})");
  const HttpResponse busy = anthropic_error_response({.status = 429, .message = "Full."});
  EXPECT_EQ(busy.status, 429);
  EXPECT_THAT(busy.body, HasSubstr("rate_limit_error"));
  EXPECT_THAT(busy.headers, ElementsAre(testing::Pair("Retry-After", "1")));
}

}  // namespace
}  // namespace unisono::serve
