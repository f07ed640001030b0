/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the plugin tables share: a log of their own, its notes, a process of its own.
 */
#ifndef TEST_PLUGIN_HELP_H
#define TEST_PLUGIN_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/plugin/plugin.h"
#include "shim/preload/comm.h"

/*
 * Run a test's body in a child: plugins are opened once in a process, and a log lasts for its life.
 * The child says on stderr what failed.
 */
static inline void in_child(void (*body)(void))
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        body();
        fflush(NULL);
        _exit(0);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

#define CHECK(cond)                                                            \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)
#define CHECK_INT(have, want)                                                                \
    do {                                                                                     \
        long have_ = (long)(have), want_ = (long)(want);                                     \
        if (have_ != want_) {                                                                \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld\n", __FILE__, __LINE__, #have, have_, \
                    want_);                                                                  \
            _exit(1);                                                                        \
        }                                                                                    \
    } while (0)

/* Log into a folder of its own under $TMPDIR; removed by close_log. */
static char log_dir[256];

static inline struct log_writer *open_log(void)
{
    const char *tmp = getenv("TMPDIR");
    struct log_writer *log;

    plugin_log_opened(&(struct log_writer){0}); /* the archive's member with the tie is linked */
    snprintf(log_dir, sizeof(log_dir), "%s/plugin-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(log_dir));
    setenv("NCCLSHIM_LOG_DIR", log_dir, 1);
    shim.log_wanted = true;
    log = shim_log();
    CHECK(log);
    return log;
}

static inline void close_log(struct log_writer *log)
{
    unlink(log->path);
    rmdir(log_dir);
}

/* The n-th note (from 0) of a type; NULL when there are fewer. */
static inline const struct ncclshim_note *note(struct log_writer *log, uint32_t type, int n)
{
    uint64_t at = 0;

    while (at + sizeof(struct ncclshim_note) <= log->notes_cap) {
        const struct ncclshim_note *have = (const struct ncclshim_note *)(log->notes + at);
        if (have->type == type && n-- == 0)
            return have;
        at += have->bytes ? (have->bytes + 63u) & ~63u : 64u;
    }
    return NULL;
}

static inline int note_count(struct log_writer *log, uint32_t type)
{
    int n = 0;

    while (note(log, type, n))
        n++;
    return n;
}

/* A communicator that is being born on this thread, as a wrapper would leave it. */
static inline struct comm *begin_birth(struct birth *b, struct comm *c, struct log_writer *log)
{
    memset(b, 0, sizeof(*b));
    memset(c, 0, sizeof(*c));
    c->lib = lib_by_number(0);
    c->ranks = 2;
    c->entry = log ? log_comm_add(log, &c->number) : NULL;
    if (c->entry) {
        c->entry->parent = -1;
        c->entry->channels = NCCLSHIM_UNKNOWN;
        c->entry->state = NCCLSHIM_COMM_STARTING;
    }
    b->comm = c;
    birth_current = b;
    return c;
}

static inline void end_birth(void)
{
    birth_current->comm->entry->state = NCCLSHIM_COMM_READY;
    birth_current = NULL;
}

#endif
