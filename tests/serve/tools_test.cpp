// Calls of tools in the families' syntaxes. The oracle is each family's own chat template: what it writes for a call in a
// conversation must be what the grammar allows and what the parser reads as that call.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "serve/answer_parser.h"
#include "serve/constraints.h"
#include "serve/fake_engine.h"
#include "serve/tool_prompt.h"
#include "support/real_files.h"
#include "text/unicode.h"

namespace unisono::serve {
namespace {

using Kind = AnswerPiece::Kind;

Json json(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Json();
}

const char* kTools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {
    "type": "object", "properties": {
      "city": {"type": "string", "description": "Where."},
      "days": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9}}, "required": ["city", "days"]}}},
  {"type": "function", "function": {"name": "get_weather_map", "description": "A map.", "parameters": {
    "type": "object", "properties": {
      "zoom": {"type": "number", "description": "How near."},
      "style": {"type": "string", "description": "How.", "enum": ["plain", "relief"]},
      "tags": {"type": "array", "description": "Of what.", "items": {"type": "string"}}}, "required": []}}}])";

ToolCall tools(std::string_view choice = "auto", bool parallel = true) {
  const JsonObject body{{"tools", json(kTools)}, {"tool_choice", choice}, {"parallel_tool_calls", parallel}};
  Fields fields(body);
  ToolCall call = read_tools(fields);
  const auto error = fields.finish();
  EXPECT_FALSE(error) << error->message;
  return call;
}

AnswerReading reading(const ToolSyntax& syntax, ToolCall call, const ReasoningSyntax* reasoning = nullptr,
                      Reasoning where = Reasoning::none) {
  AnswerReading out;
  out.syntax.tools = &syntax;
  out.syntax.reasoning = reasoning;
  out.tools = std::move(call);
  out.reasoning = where;
  return out;
}

struct Read {
  std::string reasoning, content;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Read&) const = default;
};

Read collected(const std::vector<AnswerPiece>& pieces) {
  Read out;
  for (const AnswerPiece& piece : pieces) {
    if (piece.kind == Kind::reasoning) out.reasoning += piece.text;
    if (piece.kind == Kind::content) out.content += piece.text;
    if (piece.kind == Kind::call) out.calls.emplace_back(piece.text, "");
    if (piece.kind == Kind::arguments) out.calls.back().second += piece.text;
  }
  return out;
}

// The text in pieces of up to `most` bytes, at random; whole characters, as the engine sends them.
Read read(const AnswerReading& how, std::string_view text, size_t most, uint64_t seed = 1) {
  const auto parser = make_answer_parser(how);
  std::mt19937_64 random(seed);
  std::vector<AnswerPiece> pieces;
  while (!text.empty()) {
    size_t size = std::min(text.size(), 1 + random() % most);
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) size++;
    parser->push(text.substr(0, size), pieces);
    text.remove_prefix(size);
  }
  parser->finish(pieces);
  return collected(pieces);
}

Read read(const AnswerReading& how, std::string_view text) {
  const Read whole = read(how, text, text.size() + 1);
  for (size_t most : {1, 2, 7})
    for (uint64_t seed : {1, 2}) EXPECT_EQ(read(how, text, most, seed), whole) << text;
  return whole;
}

std::optional<grammar::Matcher> matcher(const AnswerReading& how) {
  auto shape = answer_shape(how.syntax, how.tools, how.reasoning, {});
  EXPECT_TRUE(shape.ok()) << (shape.ok() ? "" : shape.error().message);
  if (!shape.ok() || !*shape) return {};
  auto grammar = grammar::Grammar::from_shape(**shape);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  if (!grammar.ok()) return {};
  static const auto trie = token_trie(byte_tokenizer(), {256});
  return grammar::Matcher(*grammar, trie);
}

bool allows(const AnswerReading& how, std::string_view text) {
  auto m = matcher(how);
  return m && (text.empty() || m->accept_bytes(text)) && m->may_end();
}

const ToolSyntax& syntax(std::string_view name) { return *tool_syntax_named(name); }

struct Family {
  const char *file, *syntax;
};
const Family kFamilies[] = {
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes"},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
    {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
    {"Qwen-Qwen3-0.6B", "hermes"},
    {"ibm-granite-granite-4.0", "hermes"},
    {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
    {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
    {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral-args"},
    {"unsloth-mistral-Devstral-Small-2507", "mistral-args"},
    {"google-gemma-4-31B-it", "gemma4"},
    {"openai-gpt-oss-120b", "gpt-oss"},
    {"Qwen3-Coder", "qwen-coder"},
    {"Qwen3.5-4B", "qwen-coder"},
    {"deepseek-ai-DeepSeek-V3.1", "deepseek-v3.1"},
    {"google-gemma-2-2b-it", "generic"},
    {"HuggingFaceTB-SmolLM3-3B", "generic"},
    {"microsoft-Phi-3.5-mini-instruct", "generic"},
};

class FamilyTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_SHARED(path, std::string("data/templates/") + GetParam().file + ".jinja");
    std::ifstream file(path);
    source_ = std::string(std::istreambuf_iterator<char>(file), {});
    auto parsed = text::ChatTemplate::parse(source_, "<s>", "</s>");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    template_ = std::make_unique<text::ChatTemplate>(*std::move(parsed));
    chat_ = chat_syntax(source_, byte_tokenizer());
  }

  std::string render(const JsonArray& messages, bool open) {
    text::ChatInput input;
    input.messages = messages;
    input.tools = json(kTools);
    input.add_generation_prompt = open;
    if (!chat_.told) write_tools(input, *chat_.tools, source_);
    auto text = template_->render(input, 1700000000);
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text.ok() ? text->text : "";
  }

  // What the template writes for an assistant's message, from where the assistant begins.
  std::string written(const JsonArray& calls) {
    JsonArray messages{{{"role", "user"}, {"content", "Hi"}}};
    const std::string open = render(messages, true);
    messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}});
    const std::string all = render(messages, false);
    // Both are alike up to the answer; what comes then may begin with the same marks.
    size_t begin = 0;
    while (begin < open.size() && begin < all.size() && open[begin] == all[begin]) begin++;
    while (begin > 0 && (all[begin - 1] == '<' || all[begin - 1] == '|')) begin--;
    return all.substr(begin);
  }

  std::string source_{};
  std::unique_ptr<text::ChatTemplate> template_{};
  ChatSyntax chat_{};
};

TEST_P(FamilyTest, TheTemplatesCallsAreAllowedAndRead) {
  EXPECT_EQ(chat_.tools->name, GetParam().syntax);
  const Json call = json(
      R"({"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Saint-\\u00c9tienne \\\"x\\\"\", \"days\": 3}"}})");
  std::string text = written({call});
  ASSERT_NE(text.find("get_weather"), text.npos) << text;
  // The mark of a thought that wasn't had.
  for (const char* none : {"<think>\n\n</think>\n\n", "\n</think>\n\n"})
    if (text.starts_with(none)) text.erase(0, std::string_view(none).size());
  AnswerReading how = reading(*chat_.tools, tools());
  auto m = matcher(how);
  ASSERT_TRUE(m);
  // As much as the grammar takes and lets end: the end of the turn follows.
  size_t size = 0;
  for (size_t taken = 0; taken < text.size() && m->accept_bytes(text.substr(taken, 1));)
    if (taken++; m->may_end()) size = taken;
  const std::string answer = text.substr(0, size);
  const Read got = read(how, answer);
  ASSERT_EQ(got.calls.size(), 1u) << text << "\n--- taken: " << answer;
  EXPECT_EQ(got.calls[0].first, "get_weather");
  EXPECT_EQ(json(got.calls[0].second), json("{\"city\": \"Saint-\\u00c9tienne \\\"x\\\"\", \"days\": 3}"));
  EXPECT_EQ(got.content, "");
  // What is left is the turn's end, and nothing that the model would have to write for the call.
  EXPECT_LT(text.size() - size, 32u) << text.substr(size);
  // Nothing else is allowed in the arguments.
  if (const size_t at = answer.find('3'); at != answer.npos) {
    std::string wrong = answer;
    wrong.replace(at, 1, "33");
    EXPECT_FALSE(allows(how, wrong)) << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, ::testing::ValuesIn(kFamilies), [](const auto& family) {
  std::string name = family.param.file;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

// For every syntax: random answers of the grammar, by random walks over its masks, are read as calls with valid arguments.
TEST(ToolSyntaxes, WhatTheGrammarMakesTheParserReads) {
  for (const ToolSyntax& one : tool_syntaxes()) {
    const AnswerReading how = reading(one, tools("required", true));
    const auto start = matcher(how);
    ASSERT_TRUE(start) << one.name;
    int complete = 0;
    for (uint64_t seed = 0; seed < 160; seed++) {
      std::mt19937_64 random(seed);
      grammar::Matcher m = *start;
      std::string text;
      std::vector<uint64_t> bits(m.mask_words());
      for (int i = 0; i < 600 && !m.must_end(); i++) {
        if (m.may_end() && random() % 8 == 0) break;
        m.mask(bits);
        std::vector<grammar::TokenId> allowed;
        // Mostly what ends things soon.
        for (grammar::TokenId id = 0; id < 256; id++)
          if (bits[static_cast<size_t>(id) / 64] >> (id % 64) & 1) allowed.push_back(id);
        if (allowed.empty()) break;
        std::erase_if(allowed, [&](grammar::TokenId id) { return allowed.size() > 4 && id > 126; });
        std::string_view ends = "\"<>\n}]";
        grammar::TokenId chosen = allowed[random() % allowed.size()];
        if (random() % 3 == 0)
          for (const grammar::TokenId id : allowed)
            if (ends.find(static_cast<char>(id)) != ends.npos) chosen = id;
        ASSERT_TRUE(m.accept(chosen));
        text += static_cast<char>(chosen);
      }
      if (!m.may_end()) continue;
      complete++;
      const Read got = read(how, text);
      EXPECT_FALSE(got.calls.empty()) << one.name << ": " << text;
      EXPECT_EQ(got.content, "") << one.name << ": " << text;
      for (const auto& [name, arguments] : got.calls) {
        const Json value = json(arguments);
        ASSERT_TRUE(value.is_object()) << one.name << ": " << arguments;
        if (name == "get_weather") {
          EXPECT_TRUE(value.at("city").is_string());
          const int64_t days = value.at("days").to_number<int64_t>();
          EXPECT_TRUE(days >= 1 && days <= 9) << arguments;
          EXPECT_EQ(value.get_object().size(), 2u);
        } else {
          EXPECT_EQ(name, "get_weather_map");
          for (const auto& entry : value.get_object())
            EXPECT_TRUE(entry.key() == "zoom" || entry.key() == "style" || entry.key() == "tags") << arguments;
        }
      }
    }
    EXPECT_GT(complete, 2) << one.name;
  }
}

TEST(ToolSyntaxes, FreeTextGoesBeforeACallAndNothingAfter) {
  const AnswerReading how = reading(syntax("hermes"), tools());
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"a</tool_call>\", \"days\": 1}}\n</tool_call>";
  EXPECT_TRUE(allows(how, "Just text with <tool and < in it."));
  EXPECT_TRUE(allows(how, "Let me see.\n" + call));
  EXPECT_TRUE(allows(how, call + "\n" + call));
  EXPECT_FALSE(allows(how, call + " done"));
  EXPECT_FALSE(allows(how, "<tool_call>"));
  EXPECT_FALSE(allows(how, "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(allows(reading(syntax("hermes"), tools("auto", false)), call + "\n" + call));
  EXPECT_FALSE(allows(reading(syntax("hermes"), tools("required")), "text"));
  EXPECT_TRUE(allows(reading(syntax("hermes"), tools("required")), call));
  const Read got = read(how, "Let me see. \n\n" + call + "\n" + call);
  EXPECT_EQ(got.content, "Let me see.");
  ASSERT_EQ(got.calls.size(), 2u);
  EXPECT_EQ(got.calls[1].second, "{\"city\": \"a</tool_call>\", \"days\": 1}");
  EXPECT_EQ(read(how, "text  \n").content, "text  \n");
  EXPECT_EQ(read(how, "a <tool_cal").content, "a <tool_cal");
  EXPECT_EQ(read(how, "<tool_call>\n{\"na").content, "<tool_call>\n{\"na");
  EXPECT_EQ(read(how, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"ci").calls[0].second, "{\"ci");
  // A later call that was cut before its name is told as it was written, as a first one is.
  const Read cut = read(how, call + "\n<tool_call>\n{\"na");
  EXPECT_EQ(cut.calls.size(), 1u);
  EXPECT_EQ(cut.content, "\n<tool_call>\n{\"na");
}

TEST(ToolSyntaxes, LlamasCallsBeginTheAnswer) {
  const AnswerReading how = reading(syntax("llama3"), tools());
  const std::string call = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\", \"days\": 2}}";
  EXPECT_TRUE(allows(how, call));
  EXPECT_TRUE(allows(how, "<|python_tag|>" + call));
  EXPECT_TRUE(allows(how, "It is {\"name\": 1}"));
  EXPECT_TRUE(allows(how, "{\"other\": 1}"));
  EXPECT_FALSE(allows(how, "{\"name\": \"x\"}"));
  EXPECT_EQ(read(how, "<|python_tag|>" + call).calls.size(), 1u);
  EXPECT_EQ(read(how, "It is " + call).content, "It is " + call);
}

TEST(Reasonings, AreSplitOff) {
  const ReasoningSyntax think{"<think>", "</think>"};
  ToolCall none;
  AnswerReading how = reading(syntax("hermes"), none, &think, Reasoning::maybe);
  Read got = read(how, "<think>\nso < it </thin is\n</think>\n\nYes.  ");
  EXPECT_EQ(got.reasoning, "so < it </thin is");
  EXPECT_EQ(got.content, "Yes.  ");
  EXPECT_EQ(read(how, "Yes <think>").content, "Yes <think>");
  EXPECT_EQ(read(how, "<thi").content, "<thi");
  got = read(how, "<think>cut off \n");
  EXPECT_EQ(got.reasoning, "cut off \n");
  how.reasoning = Reasoning::open;
  got = read(how, "\nso</think>{\"a\": 1}");
  EXPECT_EQ(got.reasoning, "so");
  EXPECT_EQ(got.content, "{\"a\": 1}");
  how.split_reasoning = false;
  EXPECT_EQ(read(how, " so </think>\n\nYes").content, " so </think>\n\nYes");
  how.reasoning = Reasoning::maybe;
  EXPECT_EQ(read(how, "<think> so </think>\n\nYes").content, "<think> so </think>\n\nYes");

  EXPECT_EQ(reasoning_after("<|im_start|>assistant\n<think>\n", &think), Reasoning::open);
  EXPECT_EQ(reasoning_after("assistant\n<think>\n\n</think>\n\n", &think), Reasoning::none);
  EXPECT_EQ(reasoning_after("<|im_start|>assistant\n", &think), Reasoning::maybe);
  EXPECT_EQ(reasoning_after("x", nullptr), Reasoning::none);
}

TEST(Reasonings, GoBeforeWhatIsConstrained) {
  const ReasoningSyntax think{"<think>", "</think>"};
  AnswerReading how = reading(syntax("hermes"), tools("required"), &think, Reasoning::maybe);
  const std::string call = "<tool_call>\n{\"name\": \"get_weather_map\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(allows(how, call));
  EXPECT_TRUE(allows(how, "<think>\nIs it <tool_call>? </think>\n\n" + call));
  EXPECT_FALSE(allows(how, "<think>so</think> Yes"));
  const Read got = read(how, "<think>\nIs it <tool_call>? </think>\n\n" + call);
  EXPECT_EQ(got.reasoning, "Is it <tool_call>?");
  EXPECT_EQ(got.calls, (std::vector<std::pair<std::string, std::string>>{{"get_weather_map", "{}"}}));
  how.reasoning = Reasoning::open;
  EXPECT_FALSE(allows(how, call));
  EXPECT_TRUE(allows(how, "so</think>" + call));
  how.tools = ToolCall();
  auto shape = answer_shape(how.syntax, how.tools, Reasoning::open, grammar::Shape::text("yes"));
  ASSERT_TRUE(shape.ok() && *shape);
  grammar::Matcher m(*grammar::Grammar::from_shape(**shape), token_trie(byte_tokenizer(), {256}));
  EXPECT_TRUE(m.accept_bytes("hm</think>\n\nyes"));
  EXPECT_TRUE(m.must_end());
}

TEST(Harmony, ChannelsAreReasoningContentAndCalls) {
  const AnswerReading how = reading(syntax("gpt-oss"), tools());
  const std::string thought = "<|channel|>analysis<|message|>Let's see.<|end|><|start|>assistant";
  const std::string call =
      "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"x\", \"days\": 2}";
  EXPECT_TRUE(allows(how, thought + "<|channel|>final<|message|>Hello."));
  EXPECT_TRUE(allows(how, thought + call));
  EXPECT_FALSE(allows(how, thought + "<|channel|>final<|message|>a<|end|>"));
  EXPECT_FALSE(allows(reading(syntax("gpt-oss"), tools("required")), "<|channel|>final<|message|>Hello."));
  Read got = read(how, thought + "<|channel|>final<|message|>Hello.");
  EXPECT_EQ(got.reasoning, "Let's see.");
  EXPECT_EQ(got.content, "Hello.");
  got = read(how, thought + call);
  ASSERT_EQ(got.calls.size(), 1u);
  EXPECT_EQ(got.calls[0].second, "{\"city\": \"x\", \"days\": 2}");
  EXPECT_EQ(read(how, "no channels").content, "no channels");
  // Nobody offered that tool, or any.
  EXPECT_TRUE(read(how, "<|channel|>commentary to=functions.other <|message|>{}").calls.empty());
  EXPECT_TRUE(read(reading(syntax("gpt-oss"), tools("none")), thought + call).calls.empty());
}

TEST(AnswerParser, WhatBeginsAFurtherCallIsNoContent) {
  for (const ToolSyntax& one : tool_syntaxes()) {
    if (one.values != ToolSyntax::Values::json || one.between.size() < 2 || !one.last.empty() || !one.before_id.empty()) continue;
    const std::string call = std::string(one.trigger) + std::string(one.first) + std::string(one.before_name) + "get_weather" +
                             std::string(one.before_arguments) + R"({"city": "x", "days": 2})" + std::string(one.after_arguments);
    const Read got = read(reading(one, tools()), call + std::string(one.between.substr(0, 1)));
    EXPECT_EQ(got.calls.size(), 1u) << one.name;
    EXPECT_EQ(got.content, "") << one.name;
  }
}

// Schemas that no standard allows, and small ones that ask for very much: refused or held, at once.
TEST(Arguments, StrangeAndGreedySchemasDoNoHarm) {
  std::string many = R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {)";
  for (int i = 0; i < 12; i++) {
    many += (i > 0 ? "," : "") + std::string("\"d") + std::to_string(i) + R"(": {"type": "object", "properties": {)";
    for (int j = 0; j < 10; j++)
      many += (j > 0 ? "," : "") + std::string("\"p") + std::to_string(j) + "\": " +
              (i < 11 ? R"({"$ref": "#/$defs/d)" + std::to_string(i + 1) + "\"}" : R"({"type": "string"})");
    many += "}}";
  }
  many += "}}";
  std::string optional = R"({"type": "object", "properties": {)";
  for (int i = 0; i < 3000; i++) optional += (i > 0 ? "," : "") + std::string("\"k") + std::to_string(i) + R"(": {"type": "integer"})";
  optional += "}}";
  const std::string strange[] = {
      R"({"type": "object", "properties": {"a": {"type": "string", "enum": 5}}})",
      R"({"type": "object", "properties": {"a": {"type": "string", "enum": null}}})",
      R"({"type": "object", "properties": {"a": {"type": "string", "enum": {}}}})",
      R"({"type": "object", "properties": {"a": {"const": []}}})",
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}})",
      R"({"type": "object", "properties": {"a": {"$ref": 5}, "b": 7, "c": null}})",
      many,
      optional,
  };
  for (const std::string& parameters : strange) {
    ToolCall call;
    call.choice = ToolCall::Choice::required;
    call.callable.push_back({"f", json(parameters).get_object(), "tools[0].function.parameters"});
    for (const ToolSyntax& one : tool_syntaxes()) {
      const auto shape = answer_shape({.tools = &one}, call, Reasoning::none, {});
      if (!shape.ok()) {
        EXPECT_TRUE(shape.error().subject.starts_with("tools[0].function.parameters")) << one.name << ": " << shape.error().subject;
      }
    }
  }
}

// A value that the grammar lets stand bare is read as text, however many references lead to its schema.
TEST(Arguments, ReferencesToReferencesAreFollowedOnBothSides) {
  ToolCall call;
  call.choice = ToolCall::Choice::required;
  call.callable.push_back({"f", json(R"({"type": "object", "properties": {"city": {"$ref": "#/$defs/a"}}, "required": ["city"],
    "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}})").get_object(), "tools[0].function.parameters"});
  for (const ToolSyntax& one : tool_syntaxes()) {
    if (one.values != ToolSyntax::Values::parameters) continue;
    const AnswerReading how = reading(one, call);
    const std::string text = std::string(one.trigger) + std::string(one.first) + std::string(one.before_name) + "f" +
                             std::string(one.before_arguments) + std::string(one.parameter_begin) + "city" + std::string(one.parameter_middle) +
                             "Paris" + std::string(one.parameter_end) + std::string(one.after_arguments) + std::string(one.last);
    const Read got = read(how, text);
    ASSERT_EQ(got.calls.size(), 1u) << one.name << ": " << text;
    EXPECT_EQ(json(got.calls[0].second), json(R"({"city": "Paris"})")) << one.name << ": " << got.calls[0].second;
  }
}

TEST(Arguments, WhatASyntaxCannotHoldIsRefusedByName) {
  JsonArray list = json(kTools).get_array();
  list[0].at("function").at("parameters").at("properties").at("city").get_object()["pattern"] = "^a";
  const JsonObject body{{"tools", list}};
  Fields fields(body);
  const ToolCall call = read_tools(fields);
  ASSERT_FALSE(fields.finish());
  for (const ToolSyntax& one : tool_syntaxes()) {
    const auto shape = answer_shape({.tools = &one}, call, Reasoning::none, {});
    const bool as_json = one.values == ToolSyntax::Values::json || one.values == ToolSyntax::Values::harmony;
    EXPECT_EQ(shape.ok(), as_json) << one.name;
    if (!shape.ok()) {
      EXPECT_EQ(shape.error().subject, "tools[0].function.parameters/properties/city/pattern");
    }
  }
}

// No keyword of a text's schema is passed over, also where values aren't written as JSON.
TEST(Arguments, EveryKeywordOfATextCounts) {
  struct Case {
    const char *schema, *refused, *taken, *not_taken;  // refused: the pointer's end
  };
  const Case cases[] = {
      {R"({"type": "string", "enum": ["a", "b"], "const": "b"})", nullptr, "b", "a"},
      {R"({"type": ["string", "null"], "enum": ["a"]})", nullptr, "a", "b"},
      {R"({"$ref": "#/$defs/a", "description": "x"})", nullptr, "c", ""},
      {R"({"type": "integer", "enum": ["a"]})", "/properties/p", "", ""},
      {R"({"$ref": "#/$defs/a", "maxLength": 1})", "/properties/p/$ref", "", ""},
      {R"({"$ref": "#/$defs/b"})", "/properties/p/$ref", "", ""},
  };
  for (const Case& one : cases) {
    ToolCall call;
    call.choice = ToolCall::Choice::required;
    JsonObject parameters = json(R"({"type": "object", "properties": {}, "required": ["p"],
      "$defs": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/a", "pattern": "x"}}})").get_object();
    parameters.at("properties").get_object()["p"] = json(one.schema);
    call.callable.push_back({"f", parameters, "tools[0].function.parameters"});
    for (const ToolSyntax& syntax : tool_syntaxes()) {
      if (syntax.values != ToolSyntax::Values::parameters && syntax.values != ToolSyntax::Values::bare) continue;
      const auto shape = answer_shape({.tools = &syntax}, call, Reasoning::none, {});
      ASSERT_EQ(shape.ok(), one.refused == nullptr) << syntax.name << " " << one.schema;
      if (one.refused) {
        EXPECT_EQ(shape.error().subject, std::string("tools[0].function.parameters") + one.refused) << shape.error().message;
        continue;
      }
      const bool bare = syntax.values == ToolSyntax::Values::bare;
      const auto written = [&](std::string_view value) {
        const std::string begin = bare ? "{p:" + std::string(syntax.quote) : std::string(syntax.parameter_begin) + "p" + std::string(syntax.parameter_middle);
        const std::string end = bare ? std::string(syntax.quote) + "}" : std::string(syntax.parameter_end);
        return std::string(syntax.trigger) + std::string(syntax.first) + std::string(syntax.before_name) + "f" +
               std::string(syntax.before_arguments) + begin + std::string(value) + end + std::string(syntax.after_arguments) + std::string(syntax.last);
      };
      EXPECT_TRUE(allows(reading(syntax, call), written(one.taken))) << syntax.name << " " << written(one.taken);
      if (*one.not_taken) {
        EXPECT_FALSE(allows(reading(syntax, call), written(one.not_taken))) << syntax.name << " " << one.schema;
      }
    }
  }
}

TEST(ToolFields, AreReadAndRefusedByName) {
  const auto of = [](std::string_view fields, std::string* param = nullptr) {
    const Json body = json("{\"tools\": " + std::string(kTools) + "," + std::string(fields) + "}");
    Fields reader(body.get_object());
    const ToolCall call = read_tools(reader);
    const auto error = reader.finish();
    if (param) *param = error ? error->param : "";
    return call;
  };
  EXPECT_EQ(of(R"("tool_choice": "none")").choice, ToolCall::Choice::none);
  EXPECT_TRUE(of(R"("tool_choice": "none")").listed.is_null());
  EXPECT_EQ(of(R"("tool_choice": "required")").choice, ToolCall::Choice::required);
  const ToolCall named = of(R"("tool_choice": {"type": "function", "function": {"name": "get_weather"}})");
  EXPECT_EQ(named.callable.size(), 1u);
  EXPECT_FALSE(named.parallel);
  EXPECT_EQ(named.listed.get_array().size(), 2u);  // the prompt doesn't change with the choice
  const ToolCall allowed = of(
      R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather_map"}}]}})");
  EXPECT_EQ(allowed.choice, ToolCall::Choice::free);
  ASSERT_EQ(allowed.callable.size(), 1u);
  EXPECT_EQ(allowed.callable[0].name, "get_weather_map");
  EXPECT_EQ(allowed.callable[0].parameters.at("additionalProperties"), false);
  for (const auto& [fields, wanted] :
       {std::pair{R"("tool_choice": "maybe")", "tool_choice"},
        {R"("tool_choice": {"type": "function", "function": {"name": "x"}})", "tool_choice.function.name"},
        {R"("tool_choice": {"type": "custom"})", "tool_choice.type"},
        {R"("parallel_tool_calls": 1)", "parallel_tool_calls"}}) {
    std::string param;
    of(fields, &param);
    EXPECT_EQ(param, wanted);
  }
  for (const auto& [list, wanted] :
       {std::pair{R"([{"type": "custom", "custom": {"name": "x"}}])", "tools[0].type"},
        {R"([{"type": "function", "function": {"name": "a b"}}])", "tools[0].function.name"},
        {R"([{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}])",
         "tools[0].function.parameters"},
        {R"([{"type": "function", "function": {"name": "a", "more": 1}}])", "tools[0].function.more"},
        {R"([{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "a"}}])",
         "tools[1].function.name"}}) {
    const JsonObject body{{"tools", json(list)}};
    Fields fields(body);
    read_tools(fields);
    const auto error = fields.finish();
    EXPECT_EQ(error ? error->param : "", wanted);
  }
}

// What no model should write, in every syntax: it is told in whole characters, and the same however it is cut.
TEST(AnswerParser, ArgumentsThatAreNoneAreToldInWholeCharacters) {
  for (const ToolSyntax& one : tool_syntaxes()) {
    const std::string head = std::string(one.trigger) + std::string(one.first) + std::string(one.before_name) +
                             "get_weather" + std::string(one.before_arguments);
    const AnswerReading how = reading(one, tools());
    for (const char* rest : {"\u00e9", "\u65e5{\u00e9:1}", "}\u00e9", "{\u00e9"}) {
      read(how, head + rest);
      std::vector<AnswerPiece> pieces;
      const auto parser = make_answer_parser(how);
      parser->push(head + rest, pieces);
      parser->finish(pieces);
      for (const AnswerPiece& piece : pieces)
        EXPECT_EQ(text::valid_prefix(piece.text), piece.text.size()) << one.name << ": " << rest;
    }
  }
}

TEST(Harmony, HeadersHaveALimitWhereverTheyAreCut) {
  const AnswerReading how = reading(syntax("gpt-oss"), tools());
  for (const size_t size : {240, 250, 255, 256, 257, 260, 300}) {
    const std::string text = std::string(size, 'x') + "<|message|>Hello.<|end|>";
    EXPECT_EQ(read(how, text).content, size <= 256 ? "Hello." : std::string(size, 'x') + "<|message|>Hello.") << size;
  }
}

// The time of a long answer in small pieces grows with its length, not with its square: counted, not timed, by how much the
// parser keeps back.
TEST(AnswerParser, KeepsNothingBackThatIsCertain) {
  const AnswerReading how = reading(syntax("hermes"), tools());
  const auto parser = make_answer_parser(how);
  std::vector<AnswerPiece> pieces;
  parser->push("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": ", pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].kind, Kind::call);
  for (const char* part : {"{\"ci", "ty\": \"a", " b <tool", "\", \"days", "\": 1"}) {
    pieces.clear();
    parser->push(part, pieces);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].text, part);
  }
}

}  // namespace
}  // namespace unisono::serve
