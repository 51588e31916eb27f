// unisono: the program. Flags, exit codes and what stands on the terminal; everything else is in the rooms.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  using namespace unisono::apps;
  CLI::App app{"unisono runs language models on this machine: the same request gives the same bits."};
  app.set_version_flag("--version", UNISONO_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  int exit_code = 0;
  add_serve(app, exit_code);
  add_chat(app, exit_code);
  add_run(app, exit_code);
  add_tokenize(app, exit_code);
  add_info(app, exit_code);
  add_template(app, exit_code);
  add_perplexity(app, exit_code);
  add_bench(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "unisono: out of memory. A smaller --kv-memory or model needs less.\n");
    return 1;
  }
  return exit_code;
}
