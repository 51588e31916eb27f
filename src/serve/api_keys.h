// API keys: who may use the server.
#pragma once

#include <string>
#include <vector>

#include "serve/router.h"

namespace unisono::serve {

// Lets through what carries one of these keys, as "Authorization: Bearer KEY" or "X-Api-Key: KEY", and /health, which needs
// none. The owner is "key 1" for the first key, and so on. How long an answer takes says nothing about the keys.
Guard key_guard(std::vector<std::string> keys);

}  // namespace unisono::serve
