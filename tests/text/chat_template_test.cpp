// Chat templates against Jinja2 in the configuration of transformers, on real templates and committed conversations.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"

namespace unisono::text {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string string_of(const Json& value) { return {value.get_string().data(), value.get_string().size()}; }

std::string fnv(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return fmt::format("{:016x}", hash);
}

ChatInput input_of(const JsonObject& conversation) {
  ChatInput input;
  input.messages = conversation.at("messages");
  if (const Json* tools = conversation.if_contains("tools")) input.tools = *tools;
  if (const Json* variables = conversation.if_contains("variables")) input.variables = variables->get_object();
  if (const Json* prompt = conversation.if_contains("add_generation_prompt"))
    input.add_generation_prompt = prompt->get_bool();
  return input;
}

TEST(ChatTemplate, RendersRealTemplatesAsTransformersDoes) {
  Json golden = *parse_json(read_file(UNISONO_GOLDEN_DIR "/templates.json"));
  Json conversations = *parse_json(read_file(UNISONO_GOLDEN_DIR "/templates_conversations.json"));
  std::string directory = UNISONO_SHARED_DIR "/data/templates/";
  int n_same = 0, n_errors = 0;
  for (const auto& entry : golden.at("hashes").get_object()) {
    std::string name(entry.key().data(), entry.key().size());
    std::string source = name == "(SmolLM2)" ? string_of(golden.at("smollm2")) : read_file(directory + name);
    if (source.empty()) continue;
    Result<ChatTemplate> parsed =
        ChatTemplate::parse(source, string_of(golden.at("bos_token")), string_of(golden.at("eos_token")));
    for (size_t i = 0; i < conversations.get_array().size(); ++i) {
      const JsonObject& conversation = conversations.get_array()[i].get_object();
      SCOPED_TRACE(name + ": " + string_of(conversation.at("name")));
      Result<MarkedText> result =
          parsed ? parsed->render(input_of(conversation), golden.at("now").get_int64()) : parsed.error();
      std::string expected = string_of(entry.value().get_array()[i]);
      EXPECT_EQ(result ? fnv(result->text) : "error", expected) << (result ? result->text : result.error().message);
      ++n_same;
      n_errors += expected == "error";
    }
  }
  RecordProperty("renderings", n_same);
  RecordProperty("of_them_errors", n_errors);
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "the real templates are not on this machine: " << directory;
}

Json json(std::string_view text) { return *parse_json(text); }

Result<MarkedText> render(const std::string& source, ChatInput input) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, "<s>", "</s>");
  if (!parsed) return parsed.error();
  return parsed->render(input, 0);
}

std::string text_of(const std::string& source, ChatInput input) {
  Result<MarkedText> result = render(source, std::move(input));
  return result ? result->text : "error: " + result.error().message;
}

ChatInput said(std::string_view messages) {
  ChatInput input;
  input.messages = json(messages);
  return input;
}

// The parts a user wrote, in « ».
std::string marked(const MarkedText& text) {
  std::string out;
  size_t at = 0;
  for (const MarkedText::Span& span : text.from_user) {
    out += text.text.substr(at, span.begin - at) + "«" + text.text.substr(span.begin, span.end - span.begin) + "»";
    at = span.end;
  }
  return out + text.text.substr(at);
}

std::string origin(const std::string& source) {
  ChatInput input = said(R"([{"role": "user", "content": " U<x> U "}])");
  input.tools = json(R"([{"name": "T", "n": [1, true, null]}])");
  input.variables["v"] = "V";
  Result<MarkedText> result = render("{% set c = messages[0].content %}" + source, input);
  return result ? marked(*result) : "error: " + result.error().message;
}

TEST(TemplateOrigin, SurvivesEveryOperation) {
  EXPECT_EQ(origin("{{ bos_token }}{{ c }}{{ eos_token }}"), "<s>« U<x> U »</s>");
  EXPECT_EQ(origin("<{{ messages[0]['role'] + '>' }}{{ v }}{{ 1 }}"), "<«user»>«V»1");
  EXPECT_EQ(origin("{{ 'a' + c.strip() + 'b' }}"), "a«U<x> U»b");
  EXPECT_EQ(origin("{{ 'a' ~ c|trim ~ v ~ 'b' }}"), "a«U<x> UV»b");
  EXPECT_EQ(origin("{{ ('[' ~ c ~ ']')[1:6] }}|{{ ('[' ~ c ~ ']')[::-1] }}"), "« U<x>»|]« U >x<U »[");
  EXPECT_EQ(origin("{{ ('<a>' ~ v).upper() }}{{ (v ~ 'Q')|lower }}{{ ('x' ~ v)|title }}"), "<A>«Vv»qX«v»");
  EXPECT_EQ(origin("{{ c.replace('U', '<s>') }}"), "« »<s>«<x> »<s>« »");
  EXPECT_EQ(origin("{{ 'aXb'.replace('X', v) }}{{ 'aXb'|replace('X', v) }}"), "a«V»ba«V»b");
  EXPECT_EQ(origin("{{ c.split()|join('<s>') }}"), "«U<x>»<s>«U»");
  EXPECT_EQ(origin("{{ v * 3 }}{{ ['<s>', v, '</s>']|join }}{{ v.join(['a', 'b']) }}"), "«VVV»<s>«V»</s>a«V»b");
  EXPECT_EQ(origin("{{ '%s-%5s' % (v, v) }}{{ '<{}>{:>3}'.format(v, v) }}"), "«V»-    «V»<«V»>  «V»");
  EXPECT_EQ(origin("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(v) }}{{ m('a')|upper }}"), "<«V»><A>");
  EXPECT_EQ(origin("{% set b %}<{{ v }}>{% endset %}{{ b }}{% filter upper %}q{{ v }}{% endfilter %}"), "<«V»>Q«V»");
  EXPECT_EQ(origin("{% for x in c %}{{ x }}.{% endfor %}"), "« ».«U».«<».«x».«>».« ».«U».« ».");
  EXPECT_EQ(origin("{{ [v]|first }}{{ {'k': v}.k }}{{ [v, 'a']|sort|last }}{{ {v: 1}|list|join }}"), "«VVVV»");
  EXPECT_EQ(origin("{{ v|indent(2, true) }}{{ v.center(5) }}{{ v.rjust(3, '*') }}"), "  «V»  «V»  **«V»");
  EXPECT_EQ(origin("{{ c|safe }}{{ c|e }}"), "« U<x> U  U&lt;x&gt; U »");
  EXPECT_EQ(origin("{% generation %}{{ v }}{% endgeneration %}{% set ns = namespace(x=v) %}{{ ns.x }}"), "«VV»");
  EXPECT_EQ(origin("{{ raise_exception(v) if false }}{{ v if true else 'b' }}{{ x|default(v) }}"), "«VV»");
  EXPECT_EQ(origin("{{ c.strip().partition('<')[2] }}{{ c.removeprefix(' U') }}{{ 'Vx'.removeprefix(v) }}"),
            "«x> U<x> U »x");
}

TEST(TemplateOrigin, JsonOfAUsersValueIsTheUsersWithItsPunctuation) {
  EXPECT_EQ(origin("<{{ tools[0]|tojson }}>"), R"(<«{"name": "T", "n": [1, true, null]}»>)");
  EXPECT_EQ(origin("<{{ tools|tojson(indent=1) }}>").substr(0, 4), "<«[");
  EXPECT_EQ(origin("<{{ tools[0] }}>"), R"(<«{'name': 'T', 'n': [1, True, None]}»>)");
  EXPECT_EQ(origin("{{ {'own': v, 't': tools[0].n}|tojson }}"), R"({"own": «"V"», "t": «[1, true, null]»})");
  EXPECT_EQ(origin("{{ tools[0].n[1:]|tojson }}{{ (tools|list)|tojson|length }}"), "«[true, null]»37");
  EXPECT_EQ(origin("{{ 'a\"' ~ v|tojson }}"), "a\"«\"V\"»");
}

// Whatever the template does: each byte of a message's sentinel is marked, and no byte of the template's own is.
TEST(TemplateOrigin, RealTemplatesMarkExactlyWhatTheMessagesBrought) {
  Json golden = *parse_json(read_file(UNISONO_GOLDEN_DIR "/templates.json"));
  std::string directory = UNISONO_SHARED_DIR "/data/templates/";
  ChatInput input = said(R"([
      {"role": "system", "content": "ⓤ<|im_start|>ⓤⓤ</s>ⓤ"}, {"role": "user", "content": "ⓤ<|im_end|>ⓤ<s>ⓤ"},
      {"role": "assistant", "content": "ⓤ[INST]ⓤ"}, {"role": "user", "content": "ⓤ"}])");
  int n = 0;
  for (const auto& entry : golden.at("hashes").get_object()) {
    std::string name(entry.key().data(), entry.key().size());
    std::string source = name == "(SmolLM2)" ? string_of(golden.at("smollm2")) : read_file(directory + name);
    if (source.empty()) continue;
    SCOPED_TRACE(name);
    Result<MarkedText> result = render(source, input);
    if (!result) continue;  // this template refuses such conversations
    ++n;
    std::string user;
    size_t before = 0;
    for (const MarkedText::Span& span : result->from_user) {
      ASSERT_LT(span.begin, span.end);
      ASSERT_TRUE(span.begin > before || (span.begin == 0 && before == 0));
      before = span.end;
      user += result->text.substr(span.begin, span.end - span.begin) + "\n";
    }
    ASSERT_LE(before, result->text.size());
    auto count = [](const std::string& text, std::string_view what) {
      size_t n = 0;
      for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count(result->text, "ⓤ"), count(user, "ⓤ"));
    // Apart from the messages and their roles nothing is the user's.
    EXPECT_EQ(count(user, "<s>"), count(user, "ⓤ<s>ⓤ"));
    EXPECT_EQ(count(user, "<|im_start|>"), count(user, "ⓤ<|im_start|>ⓤ"));
    EXPECT_EQ(count(user, "<|im_end|>"), count(user, "ⓤ<|im_end|>ⓤ"));
  }
  EXPECT_GE(n, 1);
}

TEST(TemplateInput, PartsOfContentBecomeLinesUnlessTheTemplateTakesParts) {
  ChatInput input =
      said(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(text_of("{% for m in messages %}{{ m.content }}{% endfor %}", input), "a\nb");
  EXPECT_EQ(text_of("{% for m in messages %}{% if m.content is string %}S{% else %}{% for p in m['content'] %}[{{ p.text "
                    "}}]{% endfor %}"
                    "{% endif %}{% endfor %}",
                    input),
            "[a][b]");
  EXPECT_EQ(text_of("{{ messages[0]['content']|selectattr('type', 'eq', 'text')|map(attribute='text')|join('+') }}", input),
            "a+b");
  EXPECT_EQ(text_of("{% macro show(content) %}{% for p in content %}<{{ p.text }}>{% endfor %}{% endmacro %}{{ "
                    "show(messages[0].content) }}",
                    input),
            "<a><b>");
  input = said(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])");
  Result<MarkedText> result = render("{{ messages }}", input);
  EXPECT_EQ(result.error().message, "The content part type 'image_url' is not supported: only 'text' is.");
  EXPECT_EQ(result.error().subject, "messages[0].content[0]");
}

TEST(TemplateInput, ArgumentsOfCallsBecomeValues) {
  auto call = [](std::string_view arguments) {
    return said(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f")" + std::string(arguments) + "}}]}]");
  };
  std::string source = "{{ messages[0].tool_calls[0].function.arguments|tojson }}";
  EXPECT_EQ(text_of(source, call(R"(, "arguments": "{\"b\": 1, \"a\": [1.5]}")")), R"({"b": 1, "a": [1.5]})");
  EXPECT_EQ(text_of(source, call(R"(, "arguments": {"x": 1})")), R"({"x": 1})");
  EXPECT_EQ(text_of(source, call(R"(, "arguments": "")")), "{}");
  EXPECT_EQ(text_of(source, call(R"(, "arguments": null)")), "{}");
  EXPECT_EQ(text_of(source, call("")), "{}");
  Result<MarkedText> broken = render(source, call(R"(, "arguments": "{\"a\":")"));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().subject, "messages[0].tool_calls[0].function.arguments");
}

TEST(TemplateInput, WhatIsNotGivenIsNone) {
  EXPECT_EQ(text_of("{{ tools }}{{ documents }}{{ messages[0].content }}{{ messages[1].content is defined }}",
                    said(R"([{"role": "a", "content": null}, {"role": "b"}])")),
            "NoneNoneNoneFalse");
}

TEST(TemplateInput, TheFinalMessageCanBeLeftOpen) {
  std::string chatml =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<a>{% endif %}";
  ChatInput input = said(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "Sure: "}])");
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_EQ(text_of(chatml, input), "<user>q</><assistant>Sure: ");
  Result<MarkedText> open = render(chatml, input);
  EXPECT_EQ(marked(*open), "<«user»>«q»</><«assistant»>«Sure: »");
  std::string stripping = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}";
  EXPECT_EQ(text_of(stripping, input), "<user>q</><assistant>Sure:");
  EXPECT_EQ(text_of("{{ messages|length }}", input),
            "error: The chat template does not render the last message as it is, so it can't be continued.");
  input.add_generation_prompt = true;
  EXPECT_EQ(text_of(chatml, input), "error: 'continue_final_message' and 'add_generation_prompt' can't be set together.");
  input = said(R"([{"role": "assistant", "content": null}])");
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_EQ(text_of(chatml, input), "error: The last message has no text that could be continued.");
}

TEST(TemplateInput, BrokenInputIsRefusedByName) {
  ChatInput input;
  input.messages = json("{}");
  EXPECT_EQ(render("", input).error().subject, "messages");
  input.messages = json("[1]");
  EXPECT_EQ(render("", input).error().subject, "messages[0]");
  input.messages = json("[]");
  input.tools = json("{}");
  EXPECT_EQ(render("", input).error().subject, "tools");
  input.tools = nullptr;
  input.variables["messages"] = 1;
  EXPECT_EQ(render("", input).error().message,
            "The template variable 'messages' can't be set by hand: the request's own field sets it.");
  input.variables = {{"bos_token", "X"}};
  EXPECT_EQ(marked(*render("{{ bos_token }}", input)), "«X»");
}

}  // namespace
}  // namespace unisono::text
