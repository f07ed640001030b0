/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"

struct verb {
    const char *word;
    int (*fn)(int argc, char **argv);
    const char *line;
};

static const struct verb verbs[] = {
#define X(fn, word, line) {word, fn, line},
    NCCLSHIM_VERBS(X)
#undef X
};
#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_verbs(FILE *out)
{
    fputs("usage: ncclshim VERB [OPTION]... [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-10s %s\n", verbs[i].word, verbs[i].line);
    fputs("\n`ncclshim VERB --help` tells the rest, with examples.\n", out);
}

static int unknown_verb(const char *word)
{
    const char *words[VERB_COUNT + 1];
    const char *near;

    for (size_t i = 0; i < VERB_COUNT; i++)
        words[i] = verbs[i].word;
    words[VERB_COUNT] = NULL;
    near = nearest_name(word, words);
    fprintf(stderr, "ncclshim: there is no verb '%s'", word);
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs(" `ncclshim --help` lists them\n", stderr);
    return 2;
}

/* What was printed must have arrived: a full disk is no success. */
static int told(int code)
{
    struct error e;

    if (code > 1 || (fflush(stdout) == 0 && !ferror(stdout)))
        return code;
    error_set(&e, NULL, 0, "can't print: %s", strerror(errno));
    return fail(2, &e);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_verbs(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_verbs(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("ncclshim " NCCLSHIM_VERSION);
        return 0;
    }
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (!strcmp(argv[1], verbs[i].word))
            return told(verbs[i].fn(argc - 1, argv + 1));
    return unknown_verb(argv[1]);
}
