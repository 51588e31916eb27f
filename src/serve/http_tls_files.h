// Where a server's identity lies.
#pragma once

#include <string>

namespace unisono::serve {

// PEM files: the server's certificate with what signs it, and its private key.
struct TlsFiles {
  std::string certificates{};
  std::string key{};
};

}  // namespace unisono::serve
