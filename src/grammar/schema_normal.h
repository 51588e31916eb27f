// Formulas as what can be written down: for each kind of JSON value the alternatives, each with its parts' formulas
// combined. Negation is gone here, pushed into atoms and parts. What has no exact form refuses the schema.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "grammar/number.h"
#include "grammar/regex.h"
#include "grammar/schema_formula.h"
#include "grammar/schema_reader.h"

namespace unisono::grammar {

inline constexpr uint64_t kNoLimit = std::numeric_limits<uint32_t>::max();

struct ArrayRule {
  struct Contains {
    FormulaId part;
    uint64_t from, min, max;
    uint32_t where;
    bool operator==(const Contains&) const = default;
  };
  std::vector<FormulaId> prefix{};
  FormulaId rest = FormulaTable::kAlways;
  uint64_t min = 0, max = kNoLimit;
  std::vector<Contains> contains{};
  bool unique = false;
  uint32_t where = 0;

  FormulaId item(uint64_t i) const { return i < prefix.size() ? prefix[i] : rest; }
};

struct ObjectRule {
  struct Name {
    std::string text{};
    FormulaId part = 0;
    bool required = false, declared = false;
    uint32_t witness = 0;  // bits of `some` that it may satisfy
  };
  struct Cell {  // keys but the names: those of one cell have one formula
    RegexId keys = 0;
    FormulaId part = 0;
    uint32_t witness = 0;
  };
  std::vector<Name> names{};  // declared ones first, in their order
  size_t declared = 0;
  std::vector<Cell> cells{};
  uint64_t min = 0, max = kNoLimit;
  std::vector<FormulaId> some{};  // at least one key that may witness it has a value of this formula
};

struct Normal {
  uint8_t constants = 0;  // of kNull, kFalse, kTrue
  std::vector<NumberSet> numbers{};
  std::vector<std::string> texts{};
  RegexId language = RegexPool::kNothing;
  std::vector<uint32_t> arrays{}, objects{};  // indices of rules

  bool scalar() const { return constants || !numbers.empty() || !texts.empty() || language != RegexPool::kNothing; }
};

class Normalizer {
 public:
  Normalizer(FormulaTable& formulas, SchemaReader& reader, RegexPool& pool)
      : formulas_(formulas), reader_(reader), pool_(pool) {}

  // Meaningless once the reader has an error.
  const Normal& normal(FormulaId f);
  const ArrayRule& array(uint32_t i) const { return arrays_[i]; }
  const ObjectRule& object(uint32_t i) const { return objects_[i]; }
  size_t arrays() const { return arrays_.size(); }
  size_t objects() const { return objects_.size(); }
  // No value satisfies it; false: perhaps one does.
  bool surely_empty(FormulaId f, int depth = 3);
  bool disjoint(FormulaId a, FormulaId b);

 private:
  struct Strings {
    std::optional<std::vector<std::string>> only{};
    std::vector<RegexId> conditions{};
  };
  struct Items {
    std::vector<std::pair<uint64_t, FormulaId>> at{}, from{};
    std::vector<ArrayRule::Contains> contains{};
    uint64_t min = 0, max = kNoLimit;
    bool unique = false;
    uint32_t where = 0;
  };
  struct Keys {  // a set of keys: those that match but these names
    RegexId matching = RegexPool::kAll;
    std::vector<std::string> except{};
    FormulaId part = 0;
    bool operator==(const Keys&) const = default;
  };
  struct Properties {
    struct Name {
      std::string text;
      bool declared = false, required = false;
      std::vector<FormulaId> parts{};
    };
    std::vector<Name> names{};
    std::vector<Keys> each{}, some{};
    uint64_t min = 0, max = kNoLimit;
    const Name* find(const std::string& text) const;
    Name& name(const std::string& text);
  };
  using Shape = std::variant<std::monostate, NumberSet, Strings, Items, Properties>;
  using Shapes = std::vector<Shape>;

  uint8_t kinds(FormulaId f, int depth = 0);
  void apply(Shapes& shapes, FormulaId f, bool positive, Kind kind);
  void apply_each(Shapes& shapes, const std::vector<FormulaId>& parts, bool positive, Kind kind);
  void apply_some(Shapes& shapes, const std::vector<FormulaId>& parts, bool positive, Kind kind);
  void apply_negated(Shapes& shapes, FormulaId f, Kind kind);
  bool empty(Shape& shape, int depth);
  bool parts_empty(const std::vector<FormulaId>& parts, int depth);
  static size_t weight_of(const Shape& shape);
  static bool implied(const Shape& weaker, const Shape& stronger);
  void drop_implied(Shapes& shapes);
  bool narrow(Shape& shape, const Formula& f, bool positive, Kind kind);
  bool narrow_scalar(Shape& shape, const Formula& f, bool positive, Kind kind);
  bool narrow_items(Items& items, const Formula& f, bool positive);
  bool narrow_properties(Properties& properties, const Formula& f, bool positive);
  void collect(Normal& out, Shapes shapes, Kind kind);
  std::optional<ArrayRule> finish(const Items& items);
  std::optional<ObjectRule> finish(Properties& properties);
  bool split_cells(ObjectRule& rule, const Properties& p);
  bool covers(const Keys& keys, const std::string& name);
  RegexId strings(FormulaId f);
  std::optional<FormulaId> exactly_one(FormulaId f);

  FormulaTable& formulas_;
  SchemaReader& reader_;
  RegexPool& pool_;
  std::deque<Normal> normals_{};
  static constexpr uint32_t kUnderWay = UINT32_MAX;
  std::unordered_map<FormulaId, uint32_t> known_{};  // indices of normals_
  std::unordered_map<FormulaId, uint8_t> kinds_{};
  std::deque<ArrayRule> arrays_{};
  std::deque<ObjectRule> objects_{};
  std::unordered_map<uint64_t, bool> active_{};                     // references under way
  std::unordered_map<FormulaId, std::optional<FormulaId>> ones_{};  // oneOf spelt out; nothing: under way
  size_t widened_ = 0;  // how often a set was taken larger than it is, to look for emptiness only
  size_t work_ = 0;
};

}  // namespace unisono::grammar
