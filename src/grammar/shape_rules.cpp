#include "grammar/shape_rules.h"

#include <algorithm>

#include "grammar/gbnf.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_rules.h"

namespace unisono::grammar {

namespace {

constexpr int kMaxNesting = 100;
constexpr size_t kMaxParts = 20'000;

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (next_char(text) > kMaxChar) return false;
  return true;
}

// Nodes between `from` and `to` for each shape. What it reads is never dead: where nothing could follow, it refuses.
class Compiler {
 public:
  Compiler(const JsonSchemaOptions& options, Core& core) : options_(options), core_(core) {}

  Result<void> add(const Shape& shape, NodeId from, NodeId to, int depth) {
    if (depth > kMaxNesting) return Error{"parts of a format are nested deeper than 100", ""};
    if (++parts_ > kMaxParts) return Error{"a format has more than 20000 parts", ""};
    switch (shape.kind) {
      case Shape::Kind::texts: return texts(shape, from, to);
      case Shape::Kind::free: return free(shape, from, to);
      case Shape::Kind::until: return until(shape, from, to);
      case Shape::Kind::choice:
        if (shape.parts.empty()) return Error{"a choice needs at least one part", ""};
        for (const Shape& part : shape.parts)
          if (auto done = add(part, from, to, depth + 1); !done) return done;
        return {};
      case Shape::Kind::sequence: return sequence(shape, from, to, depth);
      case Shape::Kind::many: {
        const NodeId between = core_.rules.add();
        core_.rules.peek(from).free(between);
        core_.rules.peek(between).free(to);
        return add(shape.parts.at(0), between, between, depth + 1);
      }
      case Shape::Kind::listed: {
        const NodeId before = core_.rules.add(), after = core_.rules.add();
        core_.rules.peek(from).free(before);
        core_.rules.peek(after).free(to);
        if (auto done = add(shape.parts.at(1), after, before, depth + 1); !done) return done;
        return add(shape.parts.at(0), before, after, depth + 1);
      }
      default: break;
    }
    auto rule = root_of(shape);
    if (!rule) return rule.error();
    core_.rules.peek(from).call(*rule, to);
    return {};
  }

  // Where a shape with rules of its own begins.
  Result<NodeId> root_of(const Shape& shape) {
    switch (shape.kind) {
      case Shape::Kind::schema: {
        auto rules = SchemaRules::compile(shape.schema, options_, core_.pool, core_.lexicon, core_.rules);
        if (!rules) return Error{rules.error().message, shape.where + rules.error().subject};
        const NodeId root = (*rules)->root();
        core_.sources.push_back(std::move(*rules));
        return root;
      }
      case Shape::Kind::regex: {
        auto language = parse_regex(core_.pool, shape.source, Match::whole);
        if (!language) return language.error();
        if (!core_.pool.alive(*language)) return Error{"no text matches the pattern", ""};
        const NodeId root = core_.rules.add();
        core_.rules.peek(root).read(core_.lexicon.regex(*language), RuleTable::kEnd);
        return root;
      }
      case Shape::Kind::gbnf: return compile_gbnf(shape.source, core_);
      case Shape::Kind::lark: return compile_lark(shape.source, core_);
      default: break;
    }
    const NodeId root = core_.rules.add();
    if (auto done = add(shape, root, RuleTable::kEnd, 0); !done) return done.error();
    return root;
  }

 private:
  Result<void> texts(const Shape& shape, NodeId from, NodeId to) {
    if (shape.texts.empty()) return Error{"`choice` must hold at least one text", ""};
    if (!std::all_of(shape.texts.begin(), shape.texts.end(), is_utf8)) return Error{"a text is not valid UTF-8", ""};
    core_.rules.peek(from).read(core_.lexicon.literals(shape.texts), to);
    return {};
  }

  Result<void> sequence(const Shape& shape, NodeId from, NodeId to, int depth) {
    if (shape.parts.empty()) core_.rules.peek(from).free(to);
    for (size_t i = 0; i < shape.parts.size(); ++i) {
      const NodeId next = i + 1 == shape.parts.size() ? to : core_.rules.add();
      if (auto done = add(shape.parts[i], from, next, depth + 1); !done) return done;
      from = next;
    }
    return {};
  }

  // Any text in which one of the texts occurs.
  Result<RegexId> holding(const std::vector<std::string>& texts) {
    std::vector<std::string_view> views;
    for (const std::string& text : texts) {
      if (text.empty()) return Error{"a tag must have a `begin` and a trigger that aren't empty", ""};
      if (!is_utf8(text)) return Error{"a tag is not valid UTF-8", ""};
      views.push_back(text);
    }
    if (views.empty()) return RegexPool::kNothing;
    RegexPool& pool = core_.pool;
    return pool.concat(RegexPool::kAll, pool.concat(pool.any_of(views), RegexPool::kAll));
  }

  // What must not occur is a language by complement, so a tag's bytes can't hide in free text, wherever tokens are cut.
  Result<void> free(const Shape& shape, NodeId from, NodeId to) {
    RegexPool& pool = core_.pool;
    auto held = holding(shape.texts);
    if (!held) return held.error();
    RegexId language = pool.negate(*held);
    if (!shape.source.empty()) {
      auto beginning = parse_regex(pool, shape.source, Match::whole);
      if (!beginning) return beginning.error();
      language = pool.both({language, pool.negate(pool.concat(*beginning, RegexPool::kAll))});
    }
    if (!pool.alive(language)) return Error{"no text may stand where free text is", ""};
    core_.rules.peek(from).read(core_.lexicon.regex(language), to);
    return {};
  }

  Result<void> until(const Shape& shape, NodeId from, NodeId to) {
    RegexPool& pool = core_.pool;
    std::vector<std::string> ends = shape.texts;
    ends.push_back(shape.source);
    auto held = holding(ends);
    if (!held) return held.error();
    // One of them before the last character: it stands before the end.
    const RegexId early = pool.concat(*held, RegexPool::kAnyChar);
    const RegexId language = pool.both({pool.concat(RegexPool::kAll, pool.text(shape.source)), pool.negate(early)});
    if (!pool.alive(language))
      return Error{"the tag `" + shape.source + "` can't be reached: a shorter one in it would always come first", ""};
    core_.rules.peek(from).read(core_.lexicon.regex(language), to);
    return {};
  }

  const JsonSchemaOptions& options_;
  Core& core_;
  size_t parts_ = 0;
};

}  // namespace

std::string Shape::key() const {
  const auto add = [](std::string& out, const std::string& text) { out += std::to_string(text.size()) + ":" + text; };
  std::string out = std::to_string(static_cast<int>(kind)) + "(";
  add(out, source);
  for (const std::string& text : texts) add(out, text);
  out += "|";
  if (kind == Kind::schema) add(out, to_text(schema));
  add(out, where);
  for (const Shape& part : parts) out += part.key();
  return out + ")";
}

Result<NodeId> compile_shape(const Shape& shape, const JsonSchemaOptions& options, Core& core) {
  return Compiler(options, core).root_of(shape);
}

}  // namespace unisono::grammar
