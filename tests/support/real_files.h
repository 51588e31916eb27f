// Where tests find real models, and data that only a development machine has. Both may be absent: then the test is skipped
// with a sentence that says what is missing. Never downloads anything.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace unisono::testing {

inline constexpr const char* kDefaultModel = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr const char* kGemma = "gemma-3-270m.Q4_K_M.gguf";

// The path of a model in $UNISONO_MODELS, or in the cache that `make serve` fills when the variable isn't set. Empty: it
// isn't there.
inline std::string model_file(const std::string& name) {
  const char* folder = std::getenv("UNISONO_MODELS");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string path = folder  ? std::string(folder)
                     : cache ? std::string(cache) + "/unisono/models"
                             : std::string(home ? home : "") + "/.cache/unisono/models";
  path += "/" + name;
  return std::filesystem::exists(path) ? path : std::string();
}

// The path of a file of the development data beside the project. Empty: it isn't there.
inline std::string shared_file(const std::string& name) {
  std::string path = std::string(UNISONO_SHARED_DIR) + "/" + name;
  return std::filesystem::exists(path) ? path : std::string();
}

}  // namespace unisono::testing

// SKIP_WITHOUT_MODEL(path, testing::kGemma): declares the path, or skips this test.
#define SKIP_WITHOUT_MODEL(variable, name)                           \
  const std::string variable = ::unisono::testing::model_file(name); \
  if (variable.empty()) GTEST_SKIP() << "needs the model " << (name)

#define SKIP_WITHOUT_SHARED(variable, name)                           \
  const std::string variable = ::unisono::testing::shared_file(name); \
  if (variable.empty()) GTEST_SKIP() << "needs the development data (data beside the project)"
