// The subset of Jinja against Jinja2 itself: sources of one feature each, rendered by it (tests/golden/make_templates.py).
// And what no oracle has: limits, and the origin of characters.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"
#include "text/chat_template.h"

namespace unisono::text {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string string_of(const Json& value) { return {value.get_string().data(), value.get_string().size()}; }

Result<MarkedText> render(const std::string& source, const JsonObject& variables = {}, Json messages = JsonArray()) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, "<s>", "</s>");
  if (!parsed) return parsed.error();
  ChatInput input;
  input.messages = std::move(messages);
  input.variables = variables;
  return parsed->render(input, 0);
}

std::string output(const std::string& source, const JsonObject& variables = {}) {
  Result<MarkedText> result = render(source, variables);
  return result ? result->text : "error: " + result.error().message;
}

std::string error_of(const std::string& source) {
  Result<MarkedText> result = render(source);
  return result ? "rendered: " + result->text.substr(0, 100) : result.error().message;
}

TEST(Jinja, RendersSmallTemplatesAsJinja2Does) {
  Result<Json> golden = parse_json(read_file(UNISONO_GOLDEN_DIR "/jinja_cases.json"));
  ASSERT_TRUE(golden.ok());
  const JsonObject& variables = golden->at("variables").get_object();
  int64_t now = golden->at("now").get_int64();
  ASSERT_GT(golden->at("cases").get_array().size(), 800u);
  for (const Json& entry : golden->at("cases").get_array()) {
    std::string source = string_of(entry.at("source"));
    SCOPED_TRACE(source);
    Result<ChatTemplate> parsed = ChatTemplate::parse(source, "", "");
    Result<MarkedText> result = Error{"not parsed"};
    if (parsed) {
      ChatInput input;
      input.messages = JsonArray();
      input.variables = variables;
      result = parsed->render(input, now);
    }
    const Json* expected = entry.get_object().if_contains("output");
    if (expected == nullptr) {
      EXPECT_FALSE(result.ok()) << "Jinja2 fails: " << string_of(entry.at("error")) << "\nours: " << result->text;
      continue;
    }
    std::string why = parsed ? (result ? "" : result.error().message) : parsed.error().message;
    EXPECT_TRUE(result.ok()) << why << "\nJinja2: " << string_of(*expected);
    if (result.ok()) {
      EXPECT_EQ(result->text, string_of(*expected));
    }
  }
}

TEST(Jinja, RefusesByNameAndLineWhatItLacks) {
  EXPECT_EQ(error_of("a\n\n{% include 'x' %}"), "Line 3: the tag 'include' is not supported.");
  EXPECT_EQ(error_of("{% extends 'x' %}"), "Line 1: the tag 'extends' is not supported.");
  EXPECT_EQ(error_of("{% block x %}{% endblock %}"), "Line 1: the tag 'block' is not supported.");
  EXPECT_EQ(error_of("{% import 'x' as y %}"), "Line 1: the tag 'import' is not supported.");
  EXPECT_EQ(error_of("{% autoescape true %}{% endautoescape %}"), "Line 1: the tag 'autoescape' is not supported.");
  EXPECT_EQ(error_of("{% for x in y recursive %}{% endfor %}"), "Line 1: recursive loops are not supported.");
  EXPECT_EQ(error_of("\n{{ 'a'|urlize }}"), "Line 2: the filter 'urlize' is not supported.");
  EXPECT_EQ(error_of("{% if false %}\n{{ 'a'|urlize }}{% endif %}"), "Line 2: the filter 'urlize' is not supported.");
  EXPECT_EQ(error_of("{{ 1|nosuch }}"), "Line 1: there is no filter 'nosuch'.");
  EXPECT_EQ(error_of("{{ 1 is nosuch }}"), "Line 1: there is no test 'nosuch'.");
  EXPECT_EQ(error_of("{{ self }}"), "Line 1: 'self' is not supported.");
  EXPECT_EQ(error_of("{{ '\\N{DASH}' }}"), "Line 1: the escape '\\N' is not supported.");
  EXPECT_EQ(error_of("\n{{ 'a'.encode() }}"),
            "The chat template fails at line 2: the method 'encode' of str is not supported.");
  EXPECT_EQ(error_of("{{ lipsum() }}"), "The chat template fails at line 1: the function 'lipsum' is not supported.");
  EXPECT_EQ(error_of("{{ 1.5.real }}"), "The chat template fails at line 1: the method 'real' of float is not supported.");
  EXPECT_EQ(error_of("\xFF"), "The chat template is not UTF-8.");
}

TEST(Jinja, TellsWhatWentWrongAndWhere) {
  EXPECT_EQ(error_of("a\n{{ x.y }}"), "The chat template fails at line 2: 'x' is undefined");
  EXPECT_EQ(error_of("{{ raise_exception('Only users may speak.') }}"), "Only users may speak.");
  EXPECT_EQ(error_of("{{ {}.a.b }}"), "The chat template fails at line 1: 'dict object' has no attribute 'a'");
  EXPECT_EQ(error_of("{% if x %}\n\n"), "Line 1: the block that begins here doesn't end: 'endif' is missing.");
  EXPECT_EQ(error_of("{{ [].append(1) }}"),
            "The chat template fails at line 1: access to attribute 'append' of 'list' object is unsafe.");
  // The line is the caller's again once a macro has returned.
  EXPECT_EQ(error_of("{% macro m() %}\n\n{% endmacro %}\n{{ m() }}{{ 1 +\n m() }}"),
            "The chat template fails at line 4: unsupported operand type(s) for +: 'int' and 'str'");
}

std::string repeated(std::string_view piece, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += piece;
  return text;
}

TEST(Jinja, DeepTemplatesAreRefusedNotFollowed) {
  constexpr size_t kDeep = 150'000;
  for (std::string_view open : {"(", "[", "{1:", "-", "not ", "x[", "x(", "1 if 1 else ", "[[(("}) {
    std::string error = error_of("{{ " + repeated(open, kDeep));
    EXPECT_NE(error.find("nests deeper than"), std::string::npos) << open << ": " << error;
  }
  for (std::string_view chain :
       {"+1", ".x", "[0]", "|string", "()", "~'a'|upper", " is string", " and 1", "**1", " if 1"}) {
    std::string error = error_of("{{ 1" + repeated(chain, kDeep) + " }}");
    EXPECT_TRUE(error.find("deeper") != std::string::npos || error.find("steps") != std::string::npos ||
                error.find("chained") != std::string::npos || error.find("rendered") == 0 ||
                error.find("fails") != std::string::npos)
        << chain << ": " << error;
  }
  for (std::string_view tag : {"{% if 1 %}", "{% for x in [1] %}", "{% macro m() %}", "{% set x %}", "{% filter upper %}",
                               "{% generation %}", "{% with %}", "{% call f() %}"}) {
    std::string error = error_of(repeated(tag, kDeep));
    EXPECT_NE(error.find("nests deeper than"), std::string::npos) << tag << ": " << error;
  }
  // Many branches of one `if` are no nesting.
  EXPECT_EQ(output("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% else %}x{% endif %}"), "x");
}

TEST(Jinja, DeepRunsAreStopped) {
  EXPECT_NE(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("call one another too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("{% macro a(n) %}{% if n %}{{ [[(b(n))]] }}{% endif %}{% endmacro %}"
                     "{% macro b(n) %}{% for x in [1] %}{% set y %}{{ a(n)|upper }}{% endset %}{{ y }}{% endfor %}{% "
                     "endmacro %}{{ a(1) }}")
                .find("call one another too deeply"),
            std::string::npos);
  std::string recursive = "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}";
  EXPECT_EQ(output(recursive).substr(0, 4), "6059");
  // Values that hold values that hold values.
  for (std::string_view grow : {"[ns.x]", "{'a': ns.x}", "(ns.x,)", "[ns.x].index", "cycler(ns.x)", "[ns.x]|map('list')"}) {
    std::string source =
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = " + std::string(grow) + " %}{% endfor %}";
    EXPECT_NE(error_of(source).find("nest deeper than"), std::string::npos) << grow << error_of(source);
  }
  std::string loops =
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% for y in [ns.x] %}{% set ns.x = loop %}{% endfor %}{% "
      "endfor %}";
  EXPECT_NE(error_of(loops).find("nest deeper than"), std::string::npos) << error_of(loops);
  // Namespaces may lead back to themselves.
  EXPECT_EQ(output("{% set ns = namespace() %}{% set ns.x = [ns] %}{% macro m() %}{% endmacro %}{% set ns.m = m %}ok"),
            "ok");
  std::string chain =
      "{% set o = namespace(x=none) %}{% for i in range(90000) %}{% set o.x = namespace(x=o.x) %}{% endfor %}ok";
  EXPECT_EQ(output(chain), "ok");
}

TEST(Jinja, WhatOutlivesItsLoopIsHarmless) {
  std::string keep =
      "{% set ns = namespace() %}{% for x in [1, 2, 3] if x != 9 %}{% set ns.l = loop %}{% set ns.c = loop.cycle %}"
      "{% set ns.d = loop.changed %}{% if x == 2 %}{% break %}{% endif %}{% endfor %}";
  EXPECT_EQ(output(keep + "{{ ns.l.index }}{{ ns.c('a', 'b') }}{{ ns.d(ns.l) }}{{ ns.l.last }}"), "2bTrueTrue");
  EXPECT_EQ(
      output("{% set ns = namespace() %}{% macro outer(v) %}{% macro inner() %}{{ v }}{% endmacro %}{% set ns.f = inner %}"
             "{% endmacro %}{{ outer(5) }}{{ ns.f() }}"),
      "5");
}

TEST(Jinja, WorkAndSizeAreLimited) {
  for (std::string_view source : {
           "{{ 'a' * 100000000 }}",
           "{{ 'a' * 10000000 ~ 'b' * 10000000 }}",
           "{{ [0] * 100000000 }}",
           "{{ range(100001) }}",
           "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
           "{% for i in range(100000) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}",
           "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson "
           "}}",
           "{% set a = namespace(s=[1], t=[1]) %}{% for i in range(90) %}{% set a.s = [a.s, a.s] %}{% set a.t = [a.t, a.t] "
           "%}{% endfor %}{{ a.s == a.t }}",
           "{{ '%100000000d' % 1 }}",
           "{{ '{:100000000}'.format(1) }}",
           "{{ 'a'.center(100000000) }}",
           "{{ 2 ** 1000 }}",
           "{{ 'a'|indent(100000000) }}",
           "{{ [1]|batch(1000000000, 0)|list }}",
           "{{ [1]|slice(1000000000)|list }}",
           "{{ [1]|tojson(indent=100000000) }}",
           "{{ ('a' * 1000000).replace('a', 'b' * 1000) }}",
           "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
           "{{ ('a' * 4000000).split('a')|join(', ' * 100) }}",
           "{{ dict(range(100000)|map('string')|batch(2)) }}{{ range(100000)|list|tojson|list|tojson|list|tojson|list }}",
       }) {
    Result<MarkedText> result = render(std::string(source));
    EXPECT_FALSE(result.ok()) << source << " gives " << (result ? result->text.size() : 0);
  }
}

TEST(Jinja, BuildingATextPieceByPieceIsLinear) {
  // 80,000 pieces of 50 bytes: quadratic copying would be 160 GB, and over the budget.
  std::string source = "{% set ns = namespace(s='') %}{% for i in range(80000) %}{% set ns.s = ns.s ~ '" +
                       std::string(50, 'x') + "' %}{% endfor %}{{ ns.s }}";
  EXPECT_EQ(output(source).size(), 80'000u * 50);
  std::string split = "{% set p = ('ab,' * 300000).split(',') %}{{ p|length }}";
  EXPECT_EQ(output(split), "300001");
}

TEST(Jinja, TextsThatShareMemoryStayApart) {
  EXPECT_EQ(output("{% set a = 'x' ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}{{ a }}|{{ b }}|{{ c }}|{{ b ~ c }}"),
            "xy|xy1|xy2|xy1xy2");
  EXPECT_EQ(output("{% set a = 'x' ~ 'y' %}{% set a = a ~ a %}{% set a = a ~ a[1:] ~ a %}{{ a }}"), "xyxyyxyxyxy");
  // A rendering never changes the parsed template.
  Result<ChatTemplate> parsed =
      ChatTemplate::parse("{% set a = 'x' + 'y' %}{{ a + 'z' }}{{ 'lit' ~ 1 }}{{ bos_token + 'q' }}", "B", "");
  ASSERT_TRUE(parsed.ok());
  ChatInput input;
  input.messages = JsonArray();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(parsed->render(input, 0)->text, "xyzlit1Bq");
}

}  // namespace
}  // namespace unisono::text
