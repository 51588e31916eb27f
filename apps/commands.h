// The subcommands of the program, one file each (the small ones share apps/inspect.cpp). Each adds itself to the app with
// its flags and, when it is chosen, runs and sets the exit code: 0 done, 1 our fault, 2 bad input.
#pragma once

#include <CLI/CLI.hpp>

namespace unisono::apps {

void add_serve(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_info(CLI::App& app, int& exit_code);
void add_template(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_bench_grammar(CLI::App& bench, int& exit_code);  // below bench

}  // namespace unisono::apps
