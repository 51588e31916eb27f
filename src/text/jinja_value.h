// Values of templates, with Python's meaning: what is true, equal, ordered, hashable. Values don't change once made (the
// sandbox that Hugging Face renders in forbids it), except namespaces and the like, which are Objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja_text.h"

namespace unisono::text::jinja {

class Machine;
class Value;
struct Sequence;
struct Dict;
struct Object;

// Python's int, as far as templates need it: every operation refuses what doesn't fit.
using Int = __int128;

struct Missing {};  // a variable that nothing was stored in yet; no expression has this value
struct None {};
struct Undefined {
  std::shared_ptr<const std::string> why{};  // what an operation on it says, without the line
};

using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;

class Value {
 public:
  using State = std::variant<Missing, Undefined, None, bool, Int, double, Text, SequencePtr, DictPtr, ObjectPtr>;

  Value() = default;
  Value(None) : state_(None{}) {}
  Value(Undefined undefined) : state_(std::move(undefined)) {}
  Value(bool value) : state_(value) {}
  Value(int value) : state_(Int(value)) {}
  Value(size_t value) : state_(Int(value)) {}
  Value(Int value) : state_(value) {}
  Value(double value) : state_(value) {}
  Value(Text text) : state_(std::move(text)) {}
  Value(SequencePtr items) : state_(std::move(items)) {}
  Value(DictPtr dict) : state_(std::move(dict)) {}
  Value(ObjectPtr object) : state_(std::move(object)) {}
  Value(const char*) = delete;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(state_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&state_);
  }
  const Text* text() const { return get<Text>(); }
  const Sequence* sequence() const { return is<SequencePtr>() ? std::get<SequencePtr>(state_).get() : nullptr; }
  const Dict* dict() const { return is<DictPtr>() ? std::get<DictPtr>(state_).get() : nullptr; }
  Object* object() const { return is<ObjectPtr>() ? std::get<ObjectPtr>(state_).get() : nullptr; }
  std::optional<Int> integer() const;    // of an int or bool
  std::optional<double> number() const;  // of an int, bool or float
  // The same object, as Python's `is` sees it, as far as that is defined.
  bool same(const Value& other) const;

 private:
  State state_{};
};

enum class SequenceKind : uint8_t { list, tuple, group, range, iterator, keys, values, items };

// Whatever holds values in order. An iterator (what map, select and the like return) can be gone through once; ranges and
// the views of dicts can't be changed into one another without being noticed, so each keeps its kind.
struct Sequence {
  SequenceKind kind = SequenceKind::list;
  bool from_user = false;             // a user's own array: the punctuation of its JSON counts as written by the user
  int depth = 1;                      // of nesting, this one included
  Int start = 0, stop = 0, step = 1;  // of a range, for printing
  std::vector<Value> items{};
  mutable size_t next = 0;  // of an iterator: what is left begins here

  bool is_tuple() const { return kind == SequenceKind::tuple || kind == SequenceKind::group; }
  bool is_indexed() const { return kind <= SequenceKind::range; }  // has len() and []
  bool is_view() const { return kind >= SequenceKind::keys; }      // has len() only
};

// Python's dict: in order of insertion, any hashable key.
struct Dict {
  bool from_user = false;
  int depth = 1;
  std::vector<std::pair<Value, Value>> entries{};

  const Value* find(Budget& budget, const Value& key) const;  // Refused: keys that can't be hashed
  const Value* find(std::string_view key) const;
  void set(Budget& budget, Value key, Value value);

 private:
  std::optional<size_t> position(Budget& budget, const Value& key, size_t hash) const;
  std::unordered_multimap<size_t, size_t> index_{};  // hash to place; filled once the dict is not tiny
};

// What a call was given.
struct Args {
  std::vector<Value> positional{};
  std::vector<std::pair<std::string, Value>> named{};
};

// Things with an identity: namespaces, macros, methods, `loop`.
struct Object : std::enable_shared_from_this<Object> {
  int depth = 0;  // as a list's: objects that hold values count as a level around them
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  virtual bool is_callable() const { return false; }
  virtual Value call(Machine& machine, Args args);
  virtual std::optional<Value> attribute(Machine& machine, std::string_view name);
  virtual std::string print() const;  // Refused by default: Python prints an address
};

// Limit on nesting of lists and dicts in one another, so that nothing that walks through them needs much of the stack.
constexpr int kMaxValueDepth = 100;

Value make_sequence(SequenceKind kind, std::vector<Value> items, bool from_user = false);
inline Value make_list(std::vector<Value> items) { return make_sequence(SequenceKind::list, std::move(items)); }
inline Value make_tuple(std::vector<Value> items) { return make_sequence(SequenceKind::tuple, std::move(items)); }
Value make_dict(Dict dict);  // dict.depth is computed
Value undefined(std::string why);
int depth_of(const Value& value);  // 0: holds no values
int deeper(int depth);             // depth + 1; refused when that is too deep

// The value of JSON that a user gave: all its texts are theirs.
Value from_json(Budget& budget, const Json& json);

bool truth(const Value& value);
std::string_view type_name(const Value& value);  // as Python's type(x).__name__
bool equal(Budget& budget, const Value& left, const Value& right);
// left < right. Refused as Python does: values without an order between them; operation is for that sentence.
bool less(Budget& budget, const Value& left, const Value& right, std::string_view operation = "<");
size_t hash_of(Budget& budget, const Value& value);  // Refused: lists and dicts

}  // namespace unisono::text::jinja
