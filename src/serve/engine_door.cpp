// The real engine behind the endpoints' door.
#include "serve/context.h"

namespace unisono::serve {

EngineDoor door_to(engine::Engine& engine) {
  return {.submit = [&engine](engine::Request request) { return engine.submit(std::move(request)); },
          .cancel = [&engine](engine::RequestId id) { engine.cancel(id); },
          .state = [&engine] { return engine.state(); }};
}

}  // namespace unisono::serve
