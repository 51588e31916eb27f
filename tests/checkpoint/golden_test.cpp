// Whole files against what the gguf package reads in them: two small ones that it wrote, and real models and vocabularies
// where a development machine has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "support/real_files.h"

namespace unisono::checkpoint {
namespace {

const Json& golden() {
  static const Json json = [] {
    std::ifstream file(UNISONO_GOLDEN_DIR "/checkpoint/files.json");
    std::stringstream text;
    text << file.rdbuf();
    auto parsed = parse_json(text.str());
    if (!parsed.ok()) throw std::runtime_error(parsed.error().message);
    return *parsed;
  }();
  return json;
}

std::string path_of(const std::string& name) {
  std::vector<std::string> folders = {UNISONO_GOLDEN_DIR "/checkpoint/", UNISONO_SHARED_DIR "/data/models/",
                                      UNISONO_SHARED_DIR "/data/vocab/"};
  for (const std::string& folder : folders) {
    if (std::filesystem::exists(folder + name)) return folder + name;
  }
  return unisono::testing::model_file(name);
}

std::string hex(const void* data, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; i++) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<const uint8_t*>(data)[i]);
    text += two;
  }
  return text;
}

std::string fnv1a(std::string_view bytes) {
  uint64_t digest = 0xCBF29CE484222325;
  for (const char c : bytes) digest = (digest ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

// The spelling that make_gguf.py writes, less the exact width of numbers, which a Value doesn't keep.
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }
std::string text_of(std::string_view value) { return std::string(value); }
std::string text_of(double value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

constexpr const char* kind_of(int64_t) { return "INT"; }
constexpr const char* kind_of(uint64_t) { return "INT"; }
constexpr const char* kind_of(double) { return "FLOAT"; }
constexpr const char* kind_of(bool) { return "BOOL"; }
constexpr const char* kind_of(std::string_view) { return "STRING"; }

std::string field_text(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Array>) {
          return std::visit(
              []<class E>(const std::vector<E>& items) {
                std::string lines;
                for (const E item : items) lines += text_of(item) + "\n";
                return kind_of(E{}) + ("[" + std::to_string(items.size())) + "]:" + fnv1a(lines);
              },
              v);
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return "STRING:" + (v.size() <= 40 ? std::string(v) : "fnv1a:" + fnv1a(v));
        } else {
          return kind_of(v) + (":" + text_of(v));
        }
      },
      value);
}

// UINT8, INT64, FLOAT32 ... as kind_of() spells them.
std::string without_width(std::string text) {
  if (text.starts_with("UINT")) text.erase(0, 1);
  if (!text.starts_with("INT") && !text.starts_with("FLOAT")) return text;
  const size_t end = text.find_first_of(":[");
  return text.erase(text.find_first_of("123468"), end - text.find_first_of("123468"));
}

std::string line_of(const NamedTensor& tensor) {
  return std::string(tensor.name) + " " + std::string(info(tensor.view.type).name) + " " + shape_text(tensor.view);
}

class GoldenFile : public ::testing::TestWithParam<size_t> {};

TEST_P(GoldenFile, ReadsAsTheGgufPackageReadsIt) {
  const Json& wanted = golden().at(GetParam());
  const std::string name(wanted.at("file").as_string());
  const std::string path = path_of(name);
  if (path.empty()) GTEST_SKIP() << name << " is not on this machine";
  if (std::filesystem::file_size(path) != wanted.at("size").to_number<uint64_t>()) {
    GTEST_SKIP() << name << " on this machine is another file than the golden's";
  }
  const auto file = Checkpoint::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;

  const JsonObject& metadata = wanted.at("metadata").as_object();
  ASSERT_EQ(file->metadata().size(), metadata.size());
  auto entry = file->metadata().begin();
  for (const auto& [key, text] : metadata) {
    EXPECT_EQ(entry->key, std::string_view(key));
    EXPECT_EQ(field_text(entry->value), without_width(std::string(text.as_string()))) << key;
    EXPECT_EQ(file->value(entry->key), &entry->value);
    entry++;
  }

  std::string lines;
  for (const NamedTensor& tensor : file->tensors()) lines += line_of(tensor) + "\n";
  ASSERT_EQ(file->tensors().size(), wanted.at("tensors").to_number<size_t>());
  EXPECT_EQ(fnv1a(lines), std::string_view(wanted.at("tensors_digest").as_string()));
  for (const Json& shown : wanted.at("shown").as_array()) {
    const NamedTensor& tensor = file->tensors()[shown.at("at").to_number<size_t>()];
    EXPECT_EQ(line_of(tensor), std::string_view(shown.at("tensor").as_string()));
    ASSERT_EQ(tensor.view.bytes(), shown.at("bytes").to_number<size_t>());
    EXPECT_EQ(hex(tensor.view.data, 16), std::string_view(shown.at("begin").as_string()));
    EXPECT_EQ(hex(tensor.view.data + tensor.view.bytes() - 16, 16), std::string_view(shown.at("end").as_string()));
    EXPECT_EQ(file->find(tensor.name), &tensor.view);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenFile, ::testing::Range(size_t{0}, golden().as_array().size()), [](const auto& i) {
  std::string name(golden().at(i.param).at("file").as_string());
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(RealFile, ALargeVocabularyOpensInMilliseconds) {
  const std::string path = path_of("gemma-3-270m.Q4_K_M.gguf");
  if (path.empty()) GTEST_SKIP() << "gemma-3-270m.Q4_K_M.gguf is not on this machine";
  double best = 1e9;
  for (int i = 0; i < 5; i++) {
    const auto begin = std::chrono::steady_clock::now();
    const auto file = Checkpoint::open(path);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(file.ok()) << file.error().message;
    best = std::min(best, took.count());
  }
  RecordProperty("milliseconds", std::to_string(best));
  EXPECT_LT(best, 200) << "generous: for loaded machines and sanitizers";
}

}  // namespace
}  // namespace unisono::checkpoint
