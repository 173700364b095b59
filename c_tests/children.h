// Runs this program again, as a child with other arguments: for what can be tried only once in a process.
#ifndef CVC_CHILDREN_H
#define CVC_CHILDREN_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

// The program's own path, also where it was found relative to a folder.
static inline const char *own_path(const char *argument) {
  static char path[PATH_MAX];
  return realpath(argument, path) ? path : argument;
}

#endif
