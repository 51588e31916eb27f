#include "grammar/tags.h"

#include <algorithm>

#include "grammar/schema_rules.h"

namespace unisono::grammar {

// Text without any `begin` in it is a language by complement, and so is such text that ends with one: a tag's bytes can't
// hide in free text, wherever tokens are cut.
Result<NodeId> compile_tags(const std::vector<StructuralTag>& tags, bool at_least_one, bool stop_after_first,
                            const JsonSchemaOptions& options, Core& core) {
  if (tags.empty() || tags.size() > 256) return Error{"there must be between 1 and 256 structural tags", "structural_tag"};
  RegexPool& pool = core.pool;
  std::vector<std::string_view> begins;
  for (const StructuralTag& tag : tags) {
    if (tag.begin.empty()) return Error{"a structural tag must have a `begin` that isn't empty", "structural_tag"};
    for (const std::string* text : {&tag.begin, &tag.end})
      for (std::string_view rest = *text; !rest.empty();)
        if (next_char(rest) > kMaxChar) return Error{"a structural tag is not valid UTF-8", "structural_tag"};
    // A longer begin inside or behind another would never be reached.
    for (const StructuralTag& other : tags)
      if (&other != &tag && other.begin.find(tag.begin) != std::string::npos && other.begin != tag.begin)
        return Error{"the tag `" + other.begin + "` contains the tag `" + tag.begin + "`, which would always come first",
                     "structural_tag"};
    begins.push_back(tag.begin);
  }
  const RegexId begin = pool.any_of(begins);
  const RegexId anything = pool.concat(RegexPool::kAll, pool.concat(begin, RegexPool::kAll));
  const RegexId free_text = pool.negate(anything);
  // Text in which a begin appears for the first time, at the end.
  const RegexId inside =
      pool.concat(RegexPool::kAll, pool.concat(begin, pool.repeat(RegexPool::kAnyChar, 1, RegexPool::kUnbounded)));
  auto up_to = [&](const std::string& text) {
    return pool.both({pool.concat(RegexPool::kAll, pool.text(text)), pool.negate(inside)});
  };
  const NodeId first = core.rules.add(), later = stop_after_first ? RuleTable::kEnd : core.rules.add();
  auto free_node = [&](NodeId node, bool may_end) {
    if (may_end) core.rules.peek(node).read(core.lexicon.regex(free_text), RuleTable::kEnd);
  };
  free_node(first, !at_least_one);
  if (!stop_after_first) free_node(later, true);
  for (const StructuralTag& tag : tags) {
    // One `begin` may have several contents.
    auto rules = SchemaRules::compile(tag.schema, options, pool, core.lexicon, core.rules);
    if (!rules) return Error{"in the tag `" + tag.begin + "`: " + rules.error().message, rules.error().subject};
    const NodeId content = core.rules.add(), after = core.rules.add();
    core.rules.peek(content).call((*rules)->root(), after);
    if (tag.end.empty())
      core.rules.peek(after).free(later);
    else
      core.rules.peek(after).read(core.lexicon.literals({tag.end}), later);
    for (NodeId from : {first, later})
      if (from != RuleTable::kEnd) core.rules.peek(from).read(core.lexicon.regex(up_to(tag.begin)), content);
    core.sources.push_back(std::move(*rules));
  }
  return first;
}

}  // namespace unisono::grammar
