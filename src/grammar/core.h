// What a Grammar holds: languages, terminals, rules, and what was learnt while matching. One lock for all of it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "grammar/lexicon.h"
#include "grammar/recognizer.h"
#include "grammar/regex.h"
#include "grammar/rules.h"

namespace unisono::grammar {

struct Core {
  RegexPool pool{};
  Lexicon lexicon{pool};
  RuleTable rules{};
  std::vector<std::unique_ptr<RuleSource>> sources{};
  NodeId root = RuleTable::kEnd;
  std::shared_ptr<Recognizer> recognizer{};  // replaced when it has learnt too much
  bool caching = true;                       // of masks; false only to test that it makes no difference
  std::mutex mutex{};
};

// While compiling, and after: what a grammar may learn is bounded by memory, not by the schema's budget.
inline constexpr size_t kCompileNodes = 200'000, kRunNodes = 20'000'000;
inline constexpr uint64_t kCompileSteps = 400'000, kRunSteps = uint64_t(1) << 60;

}  // namespace unisono::grammar
