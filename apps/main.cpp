// unisono: the program. Flags, exit codes and what stands on the terminal; everything else is in the rooms.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "base/quoted.h"
#include "commands.h"
#include "session.h"

namespace {

// Streams that whoever started us closed get an end that refuses: else the next file or socket would take their number,
// and what is said would go into it.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// What was printed is only now sure to have arrived.
int after_output(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "unisono: Can't write to standard output: %s.\n", std::strerror(errno));
  return exit_code == 0 ? 1 : exit_code;
}

// The first word where it is no command: the parser would only say that one is required.
bool is_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return false;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  unisono::apps::complain({"There is no command " + unisono::quoted(argv[1]) + "; there are " + known + ".", argv[1]});
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace unisono::apps;
  hold_standard_streams();
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
  if (is_unknown_command(app, argc, argv)) return 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return after_output(app.exit(error) == 0 ? 0 : 2);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "unisono: out of memory. A smaller --kv-memory or model needs less.\n");
    return 1;
  } catch (const std::system_error& error) {  // fmt tells so of a stream that takes no more
    std::fprintf(stderr, "unisono: %s.\n", error.what());
    return 1;
  }
  return app.got_subcommand("serve") ? exit_code : after_output(exit_code);
}
