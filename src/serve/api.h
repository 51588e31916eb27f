// The routes of the OpenAI-compatible API and what they do.
#pragma once

#include <memory>

#include "serve/context.h"
#include "serve/router.h"

namespace unisono::serve {

// The context must outlive the server and the engine's work on its requests.
Router make_api(const ServeContext& context);

}  // namespace unisono::serve
