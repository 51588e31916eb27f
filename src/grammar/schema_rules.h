// The grammar of a normalised JSON Schema: nodes for each place in a value, made when an answer gets there. Counts, keys
// that were used and values that were used are part of a place. A place is offered only if the value can be completed from
// it. It owns how JSON is written: order of keys, white space, literals.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/rules.h"
#include "grammar/schema_normal.h"

namespace unisono::grammar {

class SchemaRules final : public RuleSource {
 public:
  // Reads and checks the whole schema; refused as Grammar::from_json_schema says.
  static Result<std::unique_ptr<SchemaRules>> compile(const Json& schema, const JsonSchemaOptions& options, RegexPool& pool,
                                                      Lexicon& lexicon, RuleTable& rules);

  // Where a value of the schema begins.
  NodeId root();

  void expand(RuleNode& node) override;
  NodeId resolve(const RuleNode& node, LexId terminal, std::string_view text) override;

 private:
  enum class Place : uint8_t {
    structured,    // a: formula; an array or an object of it
    object_open,   // a: rule, b: state; just after {
    object_keys,   // a key comes; c: 1 with white space before it
    key_read,      // resolves by the key's name
    other_read,    // resolves by the key's text; c: cell
    colon,         // flexible white space: the colon comes; c: name, or cell + kCell
    object_value,  // c as in colon
    object_part,   // the same after white space
    object_next,   // after a value
    array_open,
    array_item,
    array_next,   // a: rule, b: state; array_item with c as in object_keys
    unique_read,  // resolves by the item's text
  };
  static constexpr uint32_t kCell = 0x80000000u;
  struct Key {
    Place place;
    uint32_t a = 0, b = 0, c = 0;
    bool operator==(const Key&) const = default;
  };
  struct ObjectState {
    uint32_t position = 0;              // declared names before it are past
    uint64_t count = 0;                 // keys so far, as far as they matter
    uint32_t bits = 0;                  // of `some` that are satisfied
    std::string used{};                 // names without a place that are used: two bytes each, sorted
    std::vector<std::string> others{};  // other keys used, sorted
    auto operator<=>(const ObjectState&) const = default;
  };
  struct ArrayState {
    uint64_t count = 0;
    std::vector<uint64_t> found{};
    std::vector<std::string> used{};  // canonical, sorted
    auto operator<=>(const ArrayState&) const = default;
  };
  struct Options {  // what may follow in an object
    bool close = false;
    std::vector<uint32_t> names{};
    std::vector<std::pair<uint32_t, LexId>> cells{};
    LexId keys = 0;  // the terminal of `names`, once asked
    bool any() const { return !names.empty() || !cells.empty(); }
  };
  struct ObjectFacts {
    std::unordered_map<std::string_view, uint32_t> by_key{};
    std::vector<uint32_t> placed, unplaced{};  // names by index
    std::vector<std::string> keys{};           // as they are written, by index
    std::vector<uint32_t> sorted{};            // names by their keys
    std::optional<RegexId> not_a_name{};
    std::optional<uint64_t> others{};  // how many other keys there can be, as far as it matters
    bool counts = false, productive = false;
  };

  SchemaRules(const Json& schema, const JsonSchemaOptions& options, RegexPool& pool, Lexicon& lexicon, RuleTable& rules);

  std::optional<Error> check_all(FormulaId root);
  void children(const Normal& n, std::vector<FormulaId>& out);
  bool becomes_productive(FormulaId f);
  bool productive(FormulaId f) const { return f < productive_.size() && productive_[f]; }
  FormulaId with(FormulaId part, const std::vector<FormulaId>& some, uint32_t subset);
  FormulaId item_with(const ArrayRule& rule, uint64_t index, uint32_t subset);
  bool check_unique(const ArrayRule& rule);

  NodeId node(Key key, RuleNode::Resolve resolve = RuleNode::Resolve::none);
  NodeId object_node(Place place, uint32_t rule, const ObjectState& state, uint32_t c = 0);
  NodeId array_node(Place place, uint32_t rule, const ArrayState& state, uint32_t c = 0);
  void add_value(RuleNode& node, FormulaId f, NodeId after);
  void add_scalars(RuleNode& node, FormulaId f, NodeId after, const std::vector<std::string>& unlike);
  bool any_unlike(FormulaId f, const std::vector<std::string>& used);
  void expand_structured(RuleNode& node, FormulaId f);
  void expand_object(RuleNode& node, const Key& key);
  void expand_object_value(RuleNode& node, const Key& key);
  void expand_array(RuleNode& node, const Key& key);
  void add_items(RuleNode& node, const Key& key);
  LexId pattern(std::string_view text);

  // Objects.
  ObjectFacts& facts(uint32_t rule);
  uint32_t state_id(uint32_t rule, const ObjectState& state);
  ObjectState after_name(uint32_t rule, const ObjectState& state, uint32_t name);
  bool closable(uint32_t rule, const ObjectState& state);
  bool completable(uint32_t rule, const ObjectState& state);
  bool search(uint32_t rule, const ObjectState& state, int& fuel);
  bool search(uint32_t rule, const ArrayState& state, int& fuel);
  Options& options(uint32_t rule, uint32_t state);
  std::vector<uint32_t> allowed_names(uint32_t rule, const ObjectState& state, bool& others);
  uint64_t others_possible(uint32_t rule, uint64_t cap);
  // Arrays.
  bool closable(const ArrayRule& rule, const ArrayState& state) const;
  bool completable(uint32_t rule, const ArrayState& state);
  std::vector<std::pair<FormulaId, ArrayState>> steps(uint32_t rule, const ArrayState& state);
  uint64_t domain(FormulaId f, uint64_t cap);

  const JsonSchemaOptions how_;
  RegexPool& pool_;
  Lexicon& lexicon_;
  RuleTable& rules_;
  FormulaTable formulas_{};
  SchemaReader reader_;
  Normalizer normalizer_;
  FormulaId root_ = 0;
  std::vector<bool> productive_{};
  std::vector<Key> keys_{};
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return ((uint64_t(k.place) * 31 + k.a) * 0x9E3779B97F4A7C15ull + k.b) * 0xFF51AFD7ED558CCDull + k.c;
    }
  };
  std::unordered_map<Key, NodeId, KeyHash> nodes_{};
  std::map<std::pair<uint32_t, ObjectState>, uint32_t> object_index_{};
  std::vector<const ObjectState*> object_states_{};
  std::map<std::pair<uint32_t, ArrayState>, uint32_t> array_index_{};
  std::vector<const ArrayState*> array_states_{};
  std::map<std::pair<uint32_t, ObjectState>, bool> object_search_{};
  std::map<std::pair<uint32_t, ArrayState>, bool> array_search_{};
  std::unordered_map<uint32_t, Options> options_{};
  std::unordered_map<uint32_t, ObjectFacts> facts_{};
  std::unordered_map<FormulaId, LexId> literals_{};
  LexId space_ = 0, open_brace_ = 0, close_brace_ = 0, open_bracket_ = 0, close_bracket_ = 0, comma_ = 0, colon_ = 0;
};

// A JSON string's text in its shortest form, with quotes.
std::string json_text(std::string_view text);

}  // namespace unisono::grammar
