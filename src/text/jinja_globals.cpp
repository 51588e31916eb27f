// The functions that every template finds, and how builtins take apart their arguments.
#include <algorithm>
#include <ctime>
#include <string>

#include "text/jinja_builtins.h"
#include "text/jinja_objects.h"

namespace unisono::text::jinja {

namespace {

constexpr Int kMaxRange = 100'000;  // as the sandbox of Jinja has it

Value raise_exception(Machine& machine, const Value&, Args args) {
  Params params(std::move(args), "raise_exception", {"message"}, 1);
  throw Failure{std::string(machine.print(params[0]).view()), true};
}

// In UTC, so that a prompt doesn't depend on where the machine stands.
Value strftime_now(Machine& machine, const Value&, Args args) {
  Params params(std::move(args), "strftime_now", {"format"}, 1);
  std::string format(params.text(0).view());
  if (format.size() > 1000 || format.find('\0') != std::string::npos) fail("the format of a date is too long");
  format.push_back('.');  // so that an empty result is told from a failure
  std::time_t seconds = machine.now();
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) fail("the current time is out of range");
  std::string text(1 << 16, '\0');
  size_t length = std::strftime(text.data(), text.size(), format.c_str(), &parts);
  if (length == 0) fail("the format of a date gives too long a text");
  TextBuilder builder(machine.budget());
  builder.append(std::string_view(text).substr(0, length - 1), params.text(0).any_from_user());
  return builder.finish();
}

Value range(Machine& machine, const Value&, Args args) {
  Params params(std::move(args), "range", {"", "", ""}, 1);
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = SequenceKind::range;
  if (params.has(1)) sequence->start = params.integer(0, 0);
  sequence->stop = params.integer(params.has(1) ? 1 : 0, 0);
  sequence->step = params.integer(2, 1);
  Int start = sequence->start, stop = sequence->stop, step = sequence->step;
  if (step == 0) fail("range() arg 3 must not be zero");
  constexpr Int kFar = Int(1) << 100;
  if (std::max({start, stop, step}) > kFar || std::min({start, stop, step}) < -kFar) fail("a range is too big");
  Int size = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (size > kMaxRange) fail("a range is too big: at most " + std::to_string(int(kMaxRange)) + " numbers are allowed");
  machine.budget().charge(static_cast<uint64_t>(std::max<Int>(size, 0)) * Budget::kElement);
  for (Int i = 0, value = start; i < size; ++i, value += step) sequence->items.push_back(value);
  return SequencePtr(std::move(sequence));
}

Dict dict_of(Machine& machine, Args args, std::string_view callee) {
  if (args.positional.size() > 1) fail(std::string(callee) + " takes one argument besides keywords");
  Budget& budget = machine.budget();
  Dict dict;
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (const Dict* other = source.dict()) {
      budget.charge(other->entries.size() * Budget::kElement);
      dict = *other;
    } else {
      for (const Value& pair : machine.elements(source)) {
        std::vector<Value> parts = machine.elements(pair);
        if (parts.size() != 2) fail("a dict is made of pairs of a key and a value");
        dict.set(budget, parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : args.named) {
    budget.charge(Budget::kElement);
    TextBuilder key(budget);
    key.append(name);
    dict.set(budget, key.finish(), std::move(value));
  }
  return dict;
}

Value make_namespace(Machine& machine, const Value&, Args args) {
  machine.budget().charge(Budget::kObject);
  auto names = std::make_shared<Namespace>();
  for (auto& [key, value] : dict_of(machine, std::move(args), "namespace").entries) {
    if (key.text() == nullptr) fail("the attributes of a namespace are named by strings");
    names->set(machine.budget(), std::string(key.text()->view()), std::move(value));
  }
  return machine.keep(std::move(names));
}

Value make_dict_of(Machine& machine, const Value&, Args args) {
  return make_dict(dict_of(machine, std::move(args), "dict"));
}

Value make_cycler(Machine&, const Value&, Args args) {
  if (args.positional.empty() || !args.named.empty()) fail("cycler needs the values to go through");
  return ObjectPtr(std::make_shared<Cycler>(std::move(args.positional)));
}

Value make_joiner(Machine&, const Value&, Args args) {
  Params params(std::move(args), "joiner", {"sep"});
  return ObjectPtr(std::make_shared<Joiner>(params.has(0) ? params.text(0) : Text::constant(", ")));
}

Value lipsum(Machine&, const Value&, Args) { fail("the function 'lipsum' is not supported."); }

struct Global {
  std::string_view name;
  Builtin::Body body;
};
constexpr Global kGlobals[] = {{"raise_exception", raise_exception},
                               {"strftime_now", strftime_now},
                               {"range", range},
                               {"namespace", make_namespace},
                               {"dict", make_dict_of},
                               {"cycler", make_cycler},
                               {"joiner", make_joiner},
                               {"lipsum", lipsum}};

}  // namespace

Value global_function(std::string_view name) {
  for (const Global& global : kGlobals)
    if (global.name == name) return make_builtin(global.name, global.body);
  return {};
}

Params::Params(Args args, std::string_view callee, std::initializer_list<std::string_view> names, size_t required)
    : callee_(callee), values_(std::move(args.positional)) {
  if (values_.size() > names.size())
    fail(std::string(callee_) + " takes at most " + std::to_string(names.size()) + " arguments");
  values_.resize(names.size());
  for (auto& [name, value] : args.named) {
    const std::string_view* found = name.empty() ? names.end() : std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(std::string(callee_) + " takes no argument '" + name + "'");
    Value& place = values_[static_cast<size_t>(found - names.begin())];
    if (!place.is<Missing>()) fail(std::string(callee_) + " is given the argument '" + name + "' twice");
    place = std::move(value);
  }
  for (size_t i = 0; i < required; ++i)
    if (!has(i)) fail(std::string(callee_) + " needs " + std::to_string(required) + " argument(s)");
}

Int Params::integer(size_t i, Int fallback) const {
  if (!has(i)) return fallback;
  if (std::optional<Int> value = values_[i].integer()) return *value;
  if (const Undefined* undefined = values_[i].get<Undefined>()) fail(*undefined->why);
  fail(std::string(callee_) + " needs an int, not " + std::string(type_name(values_[i])));
}

Text Params::text(size_t i) const {
  if (const Text* value = values_[i].text()) return *value;
  if (const Undefined* undefined = values_[i].get<Undefined>()) fail(*undefined->why);
  fail(std::string(callee_) + " needs a str, not " + std::string(type_name(values_[i])));
}

}  // namespace unisono::text::jinja
