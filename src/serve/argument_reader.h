// The arguments of one call, in a family's syntax, to JSON as they come.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/tool_syntax.h"
#include "serve/tools.h"

namespace unisono::serve {

class ArgumentReader {
 public:
  virtual ~ArgumentReader() = default;
  // Moves `rest` past what it could read, and appends it to `json`. True: the arguments are complete.
  virtual bool read(std::string_view& rest, std::string& json) = 0;
};

// Both must outlive the reader.
std::unique_ptr<ArgumentReader> make_argument_reader(const ToolSyntax& syntax, const Tool& tool);

}  // namespace unisono::serve
