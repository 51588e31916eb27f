// Reads a JSON Schema document: its draft, its identifiers and references, and each keyword as a formula. Every keyword
// is read, is an annotation by the standard, or refuses the schema. It doesn't know how formulas are enforced.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/regex.h"
#include "grammar/schema_formula.h"

namespace unisono::grammar {

class SchemaReader {
 public:
  SchemaReader(const Json& document, const JsonSchemaOptions& options, FormulaTable& formulas, RegexPool& pool);

  FormulaId root();
  // What a reference stands for.
  FormulaId target(uint32_t reference);
  const std::optional<Error>& error() const { return error_; }
  void forgive() { error_.reset(); }
  void refuse(uint32_t where, std::string reason);
  void refuse_here(std::string reason);

 private:
  struct Place {  // within the document
    const Json* schema = nullptr;
    std::string base{};
    std::string pointer{};
  };
  struct Reference {
    Place place{};
    std::optional<FormulaId> formula{};
  };
  struct Pattern {
    std::string key{};
    RegexId language{};
  };

  void index(const Json& schema, std::string base, std::string pointer, int depth);
  void index_children(const JsonObject& object, const std::string& base, const std::string& pointer, int depth);
  std::optional<Place> find(const std::string& base, std::string_view ref);
  std::optional<Place> walk(Place place, std::string_view pointer);
  bool since(Draft draft) const { return draft_ >= draft; }

  FormulaId read(const Json& schema);
  FormulaId read_object(const JsonObject& object);
  FormulaId child(const Json& schema, std::string_view step);
  FormulaId child(const Json& schema, std::string_view keyword, std::string_view step);
  std::vector<FormulaId> children(const Json& list, std::string_view keyword);
  void read_references(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_logic(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_scalars(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_arrays(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_objects(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_dependencies(const JsonObject& o, std::vector<FormulaId>& parts);
  void read_unevaluated(const JsonObject& o, std::vector<FormulaId>& parts);
  FormulaId read_types(const Json& value);
  FormulaId equal_to(const Json& value, int depth);
  FormulaId numeric(Formula::Op op, const Json& value, std::string_view keyword);
  void counts(const JsonObject& o, std::string_view keyword, Formula::Op op, std::vector<FormulaId>& parts);
  std::optional<uint64_t> count(const JsonObject& o, std::string_view keyword);
  std::optional<RegexId> pattern(std::string_view text, std::string_view keyword);
  FormulaId required(std::string_view name);
  FormulaId reference(std::string_view ref, std::string_view keyword);
  uint32_t here(std::string_view keyword);
  bool evaluated_names(const JsonObject& o, const std::string& base, std::vector<const JsonObject*>& sources, int depth);

  const Json& document_;
  const JsonSchemaOptions& options_;
  FormulaTable& formulas_;
  RegexPool& pool_;
  Draft draft_;
  std::map<std::string, Place, std::less<>> resources_{};      // by absolute identifier, without fragment
  std::map<std::string, Place, std::less<>> anchors_{};        // by identifier#anchor
  std::map<std::string, int, std::less<>> dynamic_anchors_{};  // how many schemas bear the name
  std::unordered_map<const Json*, FormulaId> known_{};
  std::unordered_map<std::string, RegexId> patterns_{};
  std::map<std::pair<std::string, std::string>, uint32_t> reference_index_{};
  std::vector<Reference> references_{};
  std::string base_{}, pointer_{};
  std::vector<std::string> wheres_{};
  std::optional<Error> error_{};
  int depth_ = 0;
};

}  // namespace unisono::grammar
