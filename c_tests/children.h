// Runs this program again, as a child with other arguments: for what can be tried only once in a process.
#ifndef CVC_CHILDREN_H
#define CVC_CHILDREN_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Starts the program with two arguments. A child that hangs is ended by SIGALRM after the seconds.
static inline pid_t start_child(const char *program, const char *first, const char *second,
                                unsigned seconds) {
  fflush(NULL);
  pid_t child = fork();
  if (child != 0)
    return child;
  alarm(seconds);
  execl(program, program, first, second, (char *)NULL);
  perror(program);
  _exit(127);
}

// The child's exit status; a negative signal number where a signal ended it.
static inline int child_status(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 126;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Starts the program with `way` and an exit status that it is to end with: `CVC_EXITS` times, or 10; how many
// ended in another way. On a GPU few run at once: each has a context, which takes memory of the machine's
// too.
static inline int bad_ends(const char *program, const char *way) {
  enum { most_at_once = 10 };
  const char *times = getenv("CVC_EXITS"), *backend = getenv("CVC_BACKEND");
  const int all = times ? atoi(times) : 10;
  const int at_once = backend && strcmp(backend, "host") == 0 ? most_at_once : 2;
  int bad = 0;
  for (int begun = 0; begun < all; begun += at_once) {
    pid_t children[most_at_once];
    const int count = all - begun < at_once ? all - begun : at_once;
    for (int i = 0; i < count; ++i) {
      char status[16];
      snprintf(status, sizeof status, "%d", 40 + i);
      children[i] = start_child(program, way, status, 120);
    }
    for (int i = 0; i < count; ++i) {
      const int status = child_status(children[i]);
      if (status != 40 + i) {
        fprintf(stderr, "%s, child %d: ended with %d, expected %d\n", way, begun + i, status, 40 + i);
        ++bad;
      }
    }
  }
  return bad;
}

// The program's own path, also where it was found relative to a folder.
static inline const char *own_path(const char *argument) {
  static char path[PATH_MAX];
  return realpath(argument, path) ? path : argument;
}

#endif
