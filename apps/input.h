// What the command line is given: texts from files and standard input, and checks of flags' values that CLI11 lacks.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace unisono::apps {

// A file's bytes, or standard input's for "-". Refused: what can't be read to its end, with the system's reason.
Result<std::string> read_text(const std::string& path);
// The same as JSON; errors name the file.
Result<Json> read_json(const std::string& path);

// Refuses an empty value: from an unset variable in a script it would switch off what the flag is there for.
extern const CLI::Validator kNotEmpty;
// A whole number that 64 bits hold, with or without sign.
extern const CLI::Validator kSeed;
// "*", "null", or an origin as browsers send it: https://chat.example.org, without path or trailing slash.
extern const CLI::Validator kOrigin;

}  // namespace unisono::apps
