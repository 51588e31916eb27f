// JSON-Schema-Test-Suite (Debian package json-schema-test-suite): every test is answered right, or its schema is refused.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bytes.h"
#include "grammar/benchmark.h"

namespace unisono::grammar {
namespace {

// Newer drafts than the package has come with the sources of Python's jsonschema: set the folder with its `json/tests`.
std::string suite() {
  const char* folder = std::getenv("UNISONO_SCHEMA_SUITE");
  return folder ? folder : "/usr/share/json-schema-test-suite/tests";
}

struct Count {
  int right = 0, refused = 0, wrong = 0;
};

Count run(const std::filesystem::path& folder, Draft draft, bool enforce_formats) {
  Count count;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    Result<Json> groups = parse_json(text, 200);
    if (!groups) continue;  // data that this project's JSON reader refuses, as lone surrogates
    for (const Json& group : groups->get_array()) {
      // The instances keep no order of keys.
      JsonSchemaOptions options;
      options.any_order = true;
      options.default_draft = draft;
      options.enforce_formats = enforce_formats;
      Result<GrammarPtr> grammar = Grammar::from_json_schema(group.at("schema"), options);
      bool satisfiable = true;
      if (!grammar) satisfiable = grammar.error().message.find("no value satisfies") == std::string::npos;
      for (const Json& test : group.at("tests").get_array()) {
        const bool valid = test.at("valid").get_bool();
        if (!grammar && (satisfiable || valid)) {
          ++count.refused;
          if (!satisfiable)
            ADD_FAILURE() << path.filename() << ": " << group.at("description")
                          << " is called empty, but a value satisfies it";
          continue;
        }
        // A schema without values is refused, and rightly takes nothing.
        const bool taken = grammar && takes(*grammar, python_json(test.at("data")));
        if (taken == valid) {
          ++count.right;
          continue;
        }
        ++count.wrong;
        ADD_FAILURE() << path.filename() << ": " << group.at("description") << ": " << test.at("description") << ": "
                      << to_text(test.at("data")) << (taken ? " was taken" : " was refused");
      }
    }
  }
  return count;
}

class Suite : public testing::TestWithParam<std::pair<const char*, Draft>> {};

TEST_P(Suite, EveryTestIsRightOrItsSchemaRefused) {
  const auto [name, draft] = GetParam();
  const auto folder = std::filesystem::path(suite()) / name;
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "the package json-schema-test-suite with this draft isn't installed";
  const Count count = run(folder, draft, false);
  RecordProperty("right", count.right);
  RecordProperty("refused", count.refused);
  std::printf("%s: %d right, %d refused, %d wrong\n", name, count.right, count.refused, count.wrong);
  EXPECT_EQ(count.wrong, 0);
  EXPECT_GT(count.right, 5 * count.refused);
}

INSTANTIATE_TEST_SUITE_P(Drafts, Suite,
                         testing::Values(std::pair("draft4", Draft::draft4), std::pair("draft6", Draft::draft6),
                                         std::pair("draft7", Draft::draft7), std::pair("draft2019-09", Draft::draft2019),
                                         std::pair("draft2020-12", Draft::draft2020)),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           std::erase_if(name, [](char c) { return c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace unisono::grammar
